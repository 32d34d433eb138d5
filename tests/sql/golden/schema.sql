CREATE TYPE odc.booking_kind AS ENUM (
    'maintenance',
    'use'
);

CREATE TYPE odc.booking_repeat AS ENUM (
    'none',
    'daily',
    'weekly',
    'weekdays'
);

CREATE TYPE odc.booking_state AS ENUM (
    'PLANNED',
    'ACTIVE',
    'ENDED',
    'DELETED'
);

CREATE TYPE odc.build_state AS ENUM (
    'queued',
    'building',
    'completed',
    'failed'
);

CREATE TYPE odc.dependency_kind AS ENUM (
    'after',
    'afterany',
    'afterok',
    'afternotok',
    'aftercorr',
    'singleton'
);

CREATE TYPE odc.dependency_state AS ENUM (
    'waiting',
    'met',
    'never'
);

CREATE TYPE odc.end_intent AS ENUM (
    'cancel',
    'requeue',
    'requeue_hold',
    'timeout',
    'deadline',
    'node_fail',
    'preempt',
    'member_failed'
);

CREATE TYPE odc.job_hold AS ENUM (
    'user',
    'admin'
);

CREATE TYPE odc.job_kind AS ENUM (
    'batch',
    'reservation'
);

CREATE TYPE odc.job_state AS ENUM (
    'PENDING',
    'CONFIGURING',
    'RUNNING',
    'COMPLETING',
    'COMPLETED',
    'FAILED',
    'TIMEOUT',
    'CANCELLED',
    'NODE_FAIL',
    'OUT_OF_MEMORY',
    'PREEMPTED',
    'DEADLINE',
    'BOOT_FAIL'
);

CREATE TYPE odc.member_state AS ENUM (
    'starting',
    'running',
    'ended'
);

CREATE TYPE odc.node_state AS ENUM (
    'UP',
    'DRAIN',
    'DOWN'
);

CREATE TYPE odc.partition_state AS ENUM (
    'UP',
    'DOWN',
    'DRAIN',
    'INACTIVE'
);

ALTER TABLE odc.account ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.account_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.account_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.account_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.account_setting_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.account_setting_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.allocation_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.allocation_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.array_job_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.array_job_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.association ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.association_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.association_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.association_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.booking ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.booking_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.booking_node_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.booking_node_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.booking_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.booking_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.build ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.build_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.coordinator_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.coordinator_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.cron_entry ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.cron_entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.dependency_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.dependency_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.disk ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.disk_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.disk_import ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.disk_import_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.disk_snapshot ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.disk_snapshot_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.disk_volume ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.disk_volume_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.gpu_type_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.gpu_type_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE odc.job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER TABLE odc.job_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.job_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.licence_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.licence_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.limited_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.limited_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE odc.node_canary
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 999999999
    CACHE 1
    CYCLE;

ALTER TABLE odc.node_free_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.node_free_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.node_group ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.node_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.node_group_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.node_group_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.node ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.node_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.node_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.node_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.partition ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.partition_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.partition_node_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.partition_node_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.partition_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.partition_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.pass ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.pass_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.pending_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.pending_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.planned_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.planned_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.policy_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.policy_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.prediction ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.prediction_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.priority_setting_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.priority_setting_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.priority_weight_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.priority_weight_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.qos ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.qos_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.qos_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.qos_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.refusal_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.refusal_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.resource_limit_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.resource_limit_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.run_time_new ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.run_time_new_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.running_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.running_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.shape ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.shape_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE odc.usage_past ALTER COLUMN past_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME odc.usage_past_past_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE odc.account (
    id integer NOT NULL,
    name text NOT NULL,
    parent integer,
    description text,
    organisation text,
    shares integer DEFAULT 1 NOT NULL,
    default_qos_id integer,
    qos_ids integer[],
    deleted_at timestamp with time zone,
    CONSTRAINT account_check CHECK ((parent <> id)),
    CONSTRAINT account_shares_check CHECK (((shares >= 0) AND (shares <= 1000000)))
);

CREATE TABLE odc.account_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    name text,
    parent integer,
    description text,
    organisation text,
    shares integer,
    default_qos_id integer,
    qos_ids integer[],
    deleted_at timestamp with time zone
);

CREATE TABLE odc.account_setting (
    one boolean DEFAULT true NOT NULL,
    enforce boolean DEFAULT false NOT NULL,
    cpus_per_gpu integer DEFAULT 24 NOT NULL,
    CONSTRAINT account_setting_cpus_per_gpu_check CHECK (((cpus_per_gpu >= 1) AND (cpus_per_gpu <= 100000))),
    CONSTRAINT account_setting_one_check CHECK (one)
);

CREATE TABLE odc.account_setting_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    one boolean,
    enforce boolean,
    cpus_per_gpu integer
);

CREATE TABLE odc.allocation (
    job_id bigint NOT NULL,
    rank integer NOT NULL,
    node_id integer NOT NULL,
    gpu_mask bigint NOT NULL,
    gpus integer NOT NULL,
    cpus integer NOT NULL,
    mem_mib integer NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    state odc.member_state DEFAULT 'starting'::odc.member_state NOT NULL,
    exit_code integer,
    exit_signal integer,
    strike text,
    signalled_at timestamp with time zone,
    used bigint[]
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', fillfactor='50');

CREATE TABLE odc.allocation_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    job_id bigint,
    rank integer,
    node_id integer,
    gpu_mask bigint,
    gpus integer,
    cpus integer,
    mem_mib integer,
    ends_at timestamp with time zone
);

CREATE TABLE odc.api_key (
    digest text NOT NULL,
    user_name text NOT NULL,
    uid integer NOT NULL,
    gid integer NOT NULL,
    made_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    prefix text,
    last_used_at timestamp with time zone,
    active boolean DEFAULT true NOT NULL,
    until_at timestamp with time zone,
    kind text DEFAULT 'key'::text NOT NULL,
    origin text,
    peer_uid integer,
    place text,
    CONSTRAINT api_key_kind_check CHECK ((kind = ANY (ARRAY['key'::text, 'ticket'::text, 'session'::text])))
);

CREATE TABLE odc.array_job (
    job_id bigint NOT NULL,
    task_min integer NOT NULL,
    task_max integer NOT NULL,
    task_count integer NOT NULL,
    task_step integer NOT NULL,
    throttle integer,
    running integer DEFAULT 0 NOT NULL,
    started integer DEFAULT 0 NOT NULL,
    ended_ok integer DEFAULT 0 NOT NULL,
    ended_not_ok integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE odc.array_job_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    job_id bigint,
    task_min integer,
    task_max integer,
    task_count integer,
    task_step integer,
    throttle integer,
    running integer,
    started integer,
    ended_ok integer,
    ended_not_ok integer
);

CREATE TABLE odc.association (
    id integer NOT NULL,
    account_id integer NOT NULL,
    uid integer NOT NULL,
    user_name text NOT NULL,
    partition_id integer,
    shares integer DEFAULT 1 NOT NULL,
    is_default boolean DEFAULT false NOT NULL,
    default_qos_id integer,
    qos_ids integer[],
    made_at timestamp with time zone NOT NULL,
    CONSTRAINT association_shares_check CHECK (((shares >= 0) AND (shares <= 1000000)))
);

CREATE TABLE odc.association_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    account_id integer,
    uid integer,
    user_name text,
    partition_id integer,
    shares integer,
    is_default boolean,
    default_qos_id integer,
    qos_ids integer[],
    made_at timestamp with time zone
);

CREATE TABLE odc.attempt (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    state odc.job_state NOT NULL,
    started_at timestamp with time zone NOT NULL,
    running_at timestamp with time zone,
    ended_at timestamp with time zone NOT NULL,
    node_names text[] NOT NULL,
    exit_code integer,
    signal integer,
    reason text,
    requeued boolean NOT NULL,
    gpus integer,
    cpus integer,
    preemption jsonb,
    used bigint[]
)
PARTITION BY RANGE (job_id);

CREATE TABLE odc.booking (
    id integer NOT NULL,
    name text NOT NULL,
    kind odc.booking_kind NOT NULL,
    state odc.booking_state DEFAULT 'PLANNED'::odc.booking_state NOT NULL,
    state_at timestamp with time zone NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    duration_s integer NOT NULL,
    repeats odc.booking_repeat DEFAULT 'none'::odc.booking_repeat NOT NULL,
    repeats_until timestamp with time zone,
    node_list text[],
    gpu_type text,
    partition_id integer,
    all_nodes boolean DEFAULT false NOT NULL,
    node_count integer,
    user_names text[] DEFAULT '{}'::text[] NOT NULL,
    uids integer[] DEFAULT '{}'::integer[] NOT NULL,
    account_ids integer[] DEFAULT '{}'::integer[] NOT NULL,
    ignore_running boolean DEFAULT false NOT NULL,
    comment text,
    reason text,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    zone text,
    CONSTRAINT booking_check CHECK ((repeats_until >= starts_at)),
    CONSTRAINT booking_check1 CHECK ((cardinality(uids) = cardinality(user_names))),
    CONSTRAINT booking_check2 CHECK (((kind = 'use'::odc.booking_kind) OR ((uids = '{}'::integer[]) AND (account_ids = '{}'::integer[])))),
    CONSTRAINT booking_check3 CHECK (((repeats <> 'none'::odc.booking_repeat) OR (repeats_until IS NULL))),
    CONSTRAINT booking_check4 CHECK ((duration_s <=
CASE repeats
    WHEN 'none'::odc.booking_repeat THEN 2147483647
    WHEN 'weekly'::odc.booking_repeat THEN 604800
    ELSE 86400
END)),
    CONSTRAINT booking_duration_s_check CHECK ((duration_s > 0)),
    CONSTRAINT booking_name_check CHECK ((name ~ '^[A-Za-z0-9._-]{1,100}$'::text)),
    CONSTRAINT booking_node_count_check CHECK ((node_count > 0)),
    CONSTRAINT booking_starts_at_check CHECK (isfinite(starts_at)),
    CONSTRAINT booking_zone CHECK (((zone IS NULL) OR (repeats <> 'none'::odc.booking_repeat)))
);

CREATE TABLE odc.booking_node (
    booking_id integer NOT NULL,
    node_id integer NOT NULL
);

CREATE TABLE odc.booking_node_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    booking_id integer,
    node_id integer
);

CREATE TABLE odc.booking_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    name text,
    kind odc.booking_kind,
    state odc.booking_state,
    state_at timestamp with time zone,
    starts_at timestamp with time zone,
    duration_s integer,
    repeats odc.booking_repeat,
    repeats_until timestamp with time zone,
    node_list text[],
    gpu_type text,
    partition_id integer,
    all_nodes boolean,
    node_count integer,
    user_names text[],
    uids integer[],
    account_ids integer[],
    ignore_running boolean,
    comment text,
    reason text,
    created_by text,
    created_at timestamp with time zone,
    zone text
);

CREATE TABLE odc.box_jupyter (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    running boolean NOT NULL,
    at timestamp with time zone NOT NULL,
    error text
);

CREATE TABLE odc.box_key (
    job_id bigint NOT NULL,
    host_key text NOT NULL,
    host_public text NOT NULL,
    gang_key text NOT NULL,
    gang_public text NOT NULL,
    made_at timestamp with time zone NOT NULL,
    jupyter_token text,
    CONSTRAINT box_key_jupyter_token_check CHECK ((jupyter_token ~ '^[0-9a-f]{64}$'::text))
);

CREATE TABLE odc.box_look (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    at timestamp with time zone NOT NULL,
    good_until timestamp with time zone NOT NULL,
    cpu_s double precision NOT NULL,
    idle_since timestamp with time zone,
    told_at timestamp with time zone
);

CREATE TABLE odc.box_phase (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    rank integer NOT NULL,
    phase text NOT NULL,
    at timestamp with time zone NOT NULL,
    told_at timestamp with time zone NOT NULL,
    message text,
    CONSTRAINT box_phase_phase_check CHECK ((phase = ANY (ARRAY['scheduling'::text, 'init'::text, 'image_pull'::text, 'ssh'::text, 'gang_barrier'::text])))
);

CREATE TABLE odc.box_port (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    port integer NOT NULL,
    addresses text[] NOT NULL,
    CONSTRAINT box_port_port_check CHECK (((port >= 1) AND (port <= 65535)))
);

CREATE TABLE odc.box_restart (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    rank integer NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    oom boolean NOT NULL,
    detail text
);

CREATE TABLE odc.build (
    id bigint NOT NULL,
    digest text NOT NULL,
    target text NOT NULL,
    dockerfile text NOT NULL,
    state odc.build_state DEFAULT 'queued'::odc.build_state NOT NULL,
    asked_by text NOT NULL,
    asked_uid integer NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started_at timestamp with time zone,
    made_at timestamp with time zone,
    ended_at timestamp with time zone,
    image text,
    step text,
    error text,
    log text DEFAULT ''::text NOT NULL,
    CONSTRAINT build_check CHECK (((state = 'completed'::odc.build_state) = (image IS NOT NULL))),
    CONSTRAINT build_check1 CHECK (((state <> 'building'::odc.build_state) OR (started_at IS NOT NULL)))
);

CREATE TABLE odc.build_asker (
    build_id bigint NOT NULL,
    uid integer NOT NULL
);

CREATE TABLE odc.build_context (
    build_id bigint NOT NULL,
    content bytea NOT NULL,
    uid integer NOT NULL,
    at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY odc.build_context ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE odc.coordinator (
    account_id integer NOT NULL,
    uid integer NOT NULL,
    user_name text NOT NULL
);

CREATE TABLE odc.coordinator_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    account_id integer,
    uid integer,
    user_name text
);

CREATE TABLE odc.cron_entry (
    id bigint NOT NULL,
    uid integer NOT NULL,
    first_line integer NOT NULL,
    line integer NOT NULL,
    schedule text NOT NULL,
    minutes integer[] NOT NULL,
    hours integer[] NOT NULL,
    days integer[] NOT NULL,
    months integer[] NOT NULL,
    weekdays integer[] NOT NULL,
    any_day boolean NOT NULL,
    every_hour boolean NOT NULL,
    zone text NOT NULL,
    request jsonb NOT NULL,
    next_at timestamp with time zone,
    last_at timestamp with time zone,
    last_result text,
    last_why text,
    last_job_id bigint,
    skipped integer DEFAULT 0 NOT NULL,
    disabled_at timestamp with time zone,
    disabled_by text,
    disabled_why text,
    CONSTRAINT cron_entry_last_result_check CHECK ((last_result = ANY (ARRAY['submitted'::text, 'skipped'::text, 'refused'::text])))
);

CREATE TABLE odc.cron_table (
    uid integer NOT NULL,
    user_name text NOT NULL,
    gid integer NOT NULL,
    content text NOT NULL,
    zone text NOT NULL,
    set_at timestamp with time zone NOT NULL
);

CREATE TABLE odc.dependency (
    job_id bigint NOT NULL,
    ord integer NOT NULL,
    kind odc.dependency_kind NOT NULL,
    target_id bigint,
    target_task integer,
    delay_s integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    name_key bigint,
    state odc.dependency_state DEFAULT 'waiting'::odc.dependency_state NOT NULL
);

CREATE TABLE odc.dependency_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    job_id bigint,
    ord integer,
    kind odc.dependency_kind,
    target_id bigint,
    target_task integer,
    delay_s integer,
    due_at timestamp with time zone,
    name_key bigint,
    state odc.dependency_state
);

CREATE TABLE odc.disk (
    id bigint NOT NULL,
    uid integer NOT NULL,
    user_name text NOT NULL,
    name text NOT NULL,
    size_gib integer NOT NULL,
    origin bigint,
    made_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    holder bigint,
    fence bigint DEFAULT 0 NOT NULL,
    trouble text,
    trouble_at timestamp with time zone,
    deleted_at timestamp with time zone,
    purge_at timestamp with time zone,
    imported_user text,
    imported_name text,
    CONSTRAINT disk_check CHECK (((deleted_at IS NULL) = (purge_at IS NULL))),
    CONSTRAINT disk_check1 CHECK (((deleted_at IS NULL) OR (holder IS NULL)))
);

CREATE TABLE odc.disk_import (
    id bigint NOT NULL,
    uid integer NOT NULL,
    user_name text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    applies boolean NOT NULL,
    owners jsonb NOT NULL,
    users text[],
    tags jsonb NOT NULL,
    state text DEFAULT 'wanted'::text NOT NULL,
    disks jsonb,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    trouble text,
    CONSTRAINT disk_import_state_check CHECK ((state = ANY (ARRAY['wanted'::text, 'done'::text, 'refused'::text])))
);

CREATE TABLE odc.disk_snapshot (
    id bigint NOT NULL,
    operation uuid DEFAULT gen_random_uuid() NOT NULL,
    disk_id bigint NOT NULL,
    volume_id bigint,
    kind text NOT NULL,
    size_gib integer NOT NULL,
    cloud_id text,
    state text DEFAULT 'wanted'::text NOT NULL,
    progress integer,
    asked_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    contents text,
    used_bytes bigint,
    labelled boolean DEFAULT true NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    trouble text,
    source text,
    adopted boolean DEFAULT false NOT NULL,
    CONSTRAINT disk_snapshot_kind_check CHECK ((kind = ANY (ARRAY['initial'::text, 'shutdown'::text, 'cancellation'::text, 'migration'::text]))),
    CONSTRAINT disk_snapshot_source CHECK (((volume_id IS NOT NULL) OR (source IS NOT NULL))),
    CONSTRAINT disk_snapshot_state_check CHECK ((state = ANY (ARRAY['wanted'::text, 'pending'::text, 'completed'::text, 'error'::text, 'deleting'::text, 'deleted'::text])))
);

CREATE TABLE odc.disk_stray (
    cloud_id text NOT NULL,
    kind text NOT NULL,
    tags jsonb NOT NULL,
    first_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT disk_stray_kind_check CHECK ((kind = ANY (ARRAY['volume'::text, 'snapshot'::text])))
);

CREATE TABLE odc.disk_volume (
    id bigint NOT NULL,
    operation uuid DEFAULT gen_random_uuid() NOT NULL,
    disk_id bigint NOT NULL,
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    fence bigint NOT NULL,
    zone text,
    size_gib integer NOT NULL,
    snapshot_id bigint,
    cloud_id text,
    state text DEFAULT 'creating'::text NOT NULL,
    state_at timestamp with time zone NOT NULL,
    made_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    withdrawn_at timestamp with time zone,
    over_at timestamp with time zone,
    end_kind text,
    contents text,
    used_bytes bigint,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    trouble text,
    CONSTRAINT disk_volume_end_kind_check CHECK ((end_kind = ANY (ARRAY['shutdown'::text, 'cancellation'::text, 'migration'::text]))),
    CONSTRAINT disk_volume_state_check CHECK ((state = ANY (ARRAY['creating'::text, 'available'::text, 'published'::text, 'releasing'::text, 'snapshotting'::text, 'deleting'::text, 'deleted'::text, 'lost'::text])))
);

CREATE TABLE odc.elastic_gone (
    node_id integer NOT NULL
);

CREATE TABLE odc.elastic_group (
    name text NOT NULL,
    gpu_type text NOT NULL,
    gpus integer NOT NULL,
    cpus integer NOT NULL,
    mem_mib integer NOT NULL,
    tmp_mib integer NOT NULL,
    zone text,
    efa_domain text,
    features text[] NOT NULL,
    topology text[] DEFAULT '{}'::text[] NOT NULL,
    learned boolean DEFAULT false NOT NULL,
    min_nodes integer NOT NULL,
    max_nodes integer NOT NULL,
    cooldown interval NOT NULL,
    idle interval NOT NULL,
    boot interval NOT NULL,
    desired integer NOT NULL,
    wanted integer,
    wanted_at timestamp with time zone,
    grown_at timestamp with time zone,
    short_since timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    failure text,
    retry_at timestamp with time zone,
    CONSTRAINT elastic_group_check CHECK ((max_nodes >= min_nodes)),
    CONSTRAINT elastic_group_min_nodes_check CHECK ((min_nodes >= 0))
);

CREATE TABLE odc.elastic_instance (
    instance_id text NOT NULL,
    group_name text NOT NULL,
    node_id integer,
    seen_at timestamp with time zone NOT NULL,
    busy_at timestamp with time zone NOT NULL,
    ended integer DEFAULT 0 NOT NULL,
    state text DEFAULT 'IN'::text NOT NULL,
    keep_until timestamp with time zone,
    CONSTRAINT elastic_instance_state_check CHECK ((state = ANY (ARRAY['IN'::text, 'LEAVING'::text, 'SENT'::text])))
);

CREATE TABLE odc.elastic_need (
    job_id bigint NOT NULL,
    group_name text NOT NULL
);

CREATE UNLOGGED TABLE odc.eta (
    job_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    place integer NOT NULL,
    p10 timestamp with time zone,
    p50 timestamp with time zone,
    p90 timestamp with time zone,
    exact boolean NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.eta_class (
    class integer NOT NULL,
    ratios integer[] NOT NULL,
    sorted integer[] NOT NULL,
    last_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE odc.eta_day (
    day date NOT NULL,
    cause text NOT NULL,
    scored bigint NOT NULL,
    inside bigint NOT NULL,
    early bigint NOT NULL,
    late bigint NOT NULL,
    abs_error_s bigint NOT NULL,
    error_s bigint NOT NULL,
    width_s bigint NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE odc.event (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    actor text NOT NULL,
    job_id bigint,
    node_id integer,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL
)
PARTITION BY RANGE (id);

CREATE TABLE odc.facts (
    one boolean DEFAULT true NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT facts_one_check CHECK (one)
)
WITH (fillfactor='10');

CREATE TABLE odc.gpu (
    node_id integer NOT NULL,
    gpu_index integer NOT NULL,
    uuid text NOT NULL,
    model text,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE odc.gpu_meter (
    one boolean DEFAULT true NOT NULL,
    source text,
    idle_ratio double precision DEFAULT 0.05 NOT NULL,
    idle_after_s integer DEFAULT 900 NOT NULL,
    CONSTRAINT gpu_meter_idle_after_s_check CHECK ((idle_after_s > 0)),
    CONSTRAINT gpu_meter_idle_ratio_check CHECK (((idle_ratio >= (0)::double precision) AND (idle_ratio <= (1)::double precision))),
    CONSTRAINT gpu_meter_one_check CHECK (one),
    CONSTRAINT gpu_meter_source_check CHECK ((source = ANY (ARRAY['prometheus'::text, 'nvml'::text])))
);

CREATE TABLE odc.gpu_now (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    at timestamp with time zone NOT NULL,
    good_until timestamp with time zone NOT NULL,
    util_ratio double precision,
    mem_used_mib integer,
    idle jsonb DEFAULT '{}'::jsonb NOT NULL,
    idle_since timestamp with time zone
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.gpu_type (
    name text NOT NULL,
    label text NOT NULL,
    gpus_per_node integer NOT NULL,
    gpu_mem_mib integer,
    cpus_per_node integer NOT NULL,
    mem_per_node_mib integer NOT NULL,
    efa_per_node integer DEFAULT 0 NOT NULL,
    instance_type text,
    CONSTRAINT gpu_type_cpus_per_node_check CHECK ((cpus_per_node > 0)),
    CONSTRAINT gpu_type_gpus_per_node_check CHECK (((gpus_per_node >= 0) AND (gpus_per_node <= 62))),
    CONSTRAINT gpu_type_mem_per_node_mib_check CHECK ((mem_per_node_mib > 0))
);

CREATE TABLE odc.gpu_type_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    name text,
    label text,
    gpus_per_node integer,
    gpu_mem_mib integer,
    cpus_per_node integer,
    mem_per_node_mib integer,
    efa_per_node integer,
    instance_type text
);

CREATE TABLE odc.gpu_use (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    gpus integer NOT NULL,
    running_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    held_s double precision GENERATED ALWAYS AS (EXTRACT(epoch FROM (ended_at - running_at))) STORED,
    covered_s double precision DEFAULT 0 NOT NULL,
    busy_gpu_s double precision DEFAULT 0 NOT NULL,
    mem_peak_mib integer,
    energy_j double precision,
    source text NOT NULL,
    gpu_uuids text[] DEFAULT '{}'::text[] NOT NULL,
    seen_until timestamp with time zone,
    again_at timestamp with time zone,
    gave_up text,
    stored_at timestamp with time zone,
    CONSTRAINT gpu_use_gpus_check CHECK ((gpus > 0))
);

CREATE TABLE odc.history_export (
    name text NOT NULL,
    kind text NOT NULL,
    low bigint NOT NULL,
    high bigint NOT NULL,
    rows bigint NOT NULL,
    target text NOT NULL,
    digest text NOT NULL,
    made_at timestamp with time zone NOT NULL,
    restored_until timestamp with time zone,
    CONSTRAINT history_export_check CHECK ((high > low)),
    CONSTRAINT history_export_kind_check CHECK ((kind = ANY (ARRAY['jobs'::text, 'events'::text]))),
    CONSTRAINT history_export_rows_check CHECK ((rows >= 0))
);

CREATE TABLE odc.history_gone (
    one boolean DEFAULT true NOT NULL,
    gpu_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT history_gone_one_check CHECK (one)
);

CREATE TABLE odc.idempotency (
    uid integer NOT NULL,
    key text NOT NULL,
    digest text NOT NULL,
    job_ids bigint[] NOT NULL,
    made_at timestamp with time zone NOT NULL
);

CREATE TABLE odc.install (
    one boolean DEFAULT true NOT NULL,
    digest text NOT NULL,
    object_count integer NOT NULL,
    installed_at timestamp with time zone NOT NULL,
    CONSTRAINT install_one_check CHECK (one)
);

CREATE TABLE odc.job (
    id bigint NOT NULL,
    kind odc.job_kind DEFAULT 'batch'::odc.job_kind NOT NULL,
    array_job_id bigint,
    array_task_id integer,
    array_tasks text,
    name text NOT NULL,
    user_name text NOT NULL,
    uid integer NOT NULL,
    gid integer NOT NULL,
    account_id integer NOT NULL,
    qos_id integer NOT NULL,
    partition_ids integer[] NOT NULL,
    shape_id integer NOT NULL,
    nice integer DEFAULT 0 NOT NULL,
    submitted_at timestamp with time zone NOT NULL,
    begin_at timestamp with time zone,
    deadline_at timestamp with time zone,
    time_limit_s integer NOT NULL,
    dependency text,
    array_throttle integer,
    requeue boolean NOT NULL,
    work_dir text NOT NULL,
    stdin text,
    stdout text,
    stderr text,
    open_mode text DEFAULT 'truncate'::text NOT NULL,
    umask integer NOT NULL,
    signal_number integer,
    signal_before_s integer,
    signal_batch boolean DEFAULT false NOT NULL,
    script_digest text NOT NULL,
    environment_digest text NOT NULL,
    args text[] DEFAULT '{}'::text[] NOT NULL,
    comment text,
    submit_host text,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    state odc.job_state,
    reason text,
    end_detail text,
    partition_id integer,
    attempt integer,
    eligible_at timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    node_names text[],
    exit_code integer,
    signal integer,
    ended_by text,
    CONSTRAINT job_state_check CHECK ((state >= 'COMPLETED'::odc.job_state))
)
PARTITION BY RANGE (id);

CREATE TABLE odc.job_mail (
    job_id bigint NOT NULL,
    kinds text[] NOT NULL,
    address text NOT NULL
);

CREATE TABLE odc.job_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id bigint,
    array_task_id integer,
    array_tasks text,
    name text,
    partition_ids integer[],
    shape_id integer,
    nice integer,
    begin_at timestamp with time zone,
    deadline_at timestamp with time zone,
    time_limit_s integer,
    dependency text,
    array_throttle integer,
    comment text
);

CREATE TABLE odc.job_text (
    digest text NOT NULL,
    content text NOT NULL,
    used_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY odc.job_text ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE odc.kept_output (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    rank integer NOT NULL,
    kept_at timestamp with time zone NOT NULL,
    written bigint NOT NULL,
    content bytea NOT NULL,
    read_through text
);
ALTER TABLE ONLY odc.kept_output ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE odc.licence (
    name text NOT NULL,
    total integer NOT NULL,
    CONSTRAINT licence_name_check CHECK ((name ~ '^[A-Za-z0-9._@/-]{1,100}$'::text)),
    CONSTRAINT licence_total_check CHECK ((total >= 0))
);

CREATE TABLE odc.licence_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    name text,
    total integer
);

CREATE TABLE odc.limited (
    shape_id integer NOT NULL,
    time_limit_s integer NOT NULL,
    uid integer NOT NULL,
    account_id integer NOT NULL,
    qos_id integer NOT NULL,
    reason text NOT NULL
);

CREATE TABLE odc.limited_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    shape_id integer,
    time_limit_s integer,
    uid integer,
    account_id integer,
    qos_id integer,
    reason text
);

CREATE TABLE odc.local_host (
    one boolean DEFAULT true NOT NULL,
    machine_id text NOT NULL,
    host_name text NOT NULL,
    CONSTRAINT local_host_one_check CHECK (one)
);

CREATE TABLE odc.login_signature (
    digest text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE odc.login_user (
    user_name text NOT NULL,
    uid integer NOT NULL,
    github_user text,
    made_at timestamp with time zone NOT NULL,
    login_at timestamp with time zone NOT NULL
);

CREATE TABLE odc.migration (
    version integer NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    applied_at timestamp with time zone NOT NULL,
    compatible_since integer
);

CREATE TABLE odc.node (
    id integer NOT NULL,
    name text NOT NULL,
    gpu_type text NOT NULL,
    gpus integer NOT NULL,
    cpus integer NOT NULL,
    mem_mib integer NOT NULL,
    zone text,
    efa_domain text,
    features text[] DEFAULT '{}'::text[] NOT NULL,
    state odc.node_state DEFAULT 'UP'::odc.node_state NOT NULL,
    reason text,
    reason_by text,
    state_at timestamp with time zone NOT NULL,
    declared boolean DEFAULT false NOT NULL,
    topology text[] DEFAULT '{}'::text[] NOT NULL,
    foreign_gpu_mask bigint DEFAULT 0 NOT NULL,
    foreign_cpus integer DEFAULT 0 NOT NULL,
    foreign_mem_mib integer DEFAULT 0 NOT NULL,
    tmp_mib integer DEFAULT 0 NOT NULL,
    CONSTRAINT node_cpus_check CHECK ((cpus > 0)),
    CONSTRAINT node_foreign_cpus_check CHECK ((foreign_cpus >= 0)),
    CONSTRAINT node_foreign_mem_mib_check CHECK ((foreign_mem_mib >= 0)),
    CONSTRAINT node_gpus_check CHECK (((gpus >= 0) AND (gpus <= 62))),
    CONSTRAINT node_mem_mib_check CHECK ((mem_mib > 0)),
    CONSTRAINT node_tmp_mib_check CHECK ((tmp_mib >= 0))
);

CREATE TABLE odc.node_free (
    node_id integer NOT NULL,
    group_id integer NOT NULL,
    up boolean NOT NULL,
    gpu_mask bigint NOT NULL,
    gpus integer NOT NULL,
    cpus integer NOT NULL,
    mem_mib integer NOT NULL,
    jobs integer DEFAULT 0 NOT NULL,
    ended integer DEFAULT 0 NOT NULL,
    CONSTRAINT node_free_cpus_check CHECK ((cpus >= 0)),
    CONSTRAINT node_free_gpus_check CHECK ((gpus >= 0)),
    CONSTRAINT node_free_jobs_check CHECK ((jobs >= 0)),
    CONSTRAINT node_free_mem_mib_check CHECK ((mem_mib >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.node_free_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    node_id integer,
    group_id integer,
    up boolean
);

CREATE TABLE odc.node_group (
    id integer NOT NULL,
    gpu_type text NOT NULL,
    gpus integer NOT NULL,
    cpus integer NOT NULL,
    mem_mib integer NOT NULL,
    efa_domain text,
    features text[] NOT NULL,
    partition_ids integer[] NOT NULL,
    tmp_mib integer DEFAULT 0 NOT NULL
);

CREATE TABLE odc.node_group_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    gpu_type text,
    gpus integer,
    cpus integer,
    mem_mib integer,
    efa_domain text,
    features text[],
    partition_ids integer[],
    tmp_mib integer DEFAULT 0
);

CREATE TABLE odc.node_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    name text,
    gpu_type text,
    gpus integer,
    cpus integer,
    mem_mib integer,
    zone text,
    efa_domain text,
    features text[],
    state odc.node_state,
    reason text,
    reason_by text,
    state_at timestamp with time zone,
    declared boolean,
    topology text[],
    foreign_gpu_mask bigint,
    foreign_cpus integer,
    foreign_mem_mib integer,
    tmp_mib integer DEFAULT 0
);

CREATE TABLE odc.node_quarantine (
    node_id integer NOT NULL,
    since timestamp with time zone NOT NULL,
    evidence text NOT NULL,
    reason text NOT NULL,
    drained boolean NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    try_at timestamp with time zone NOT NULL,
    canary integer,
    canary_until timestamp with time zone
);

CREATE TABLE odc.node_strike (
    node_id integer NOT NULL,
    uid integer NOT NULL,
    script_digest text NOT NULL,
    cause text NOT NULL,
    at timestamp with time zone NOT NULL,
    job_id bigint NOT NULL,
    nths integer[] NOT NULL,
    CONSTRAINT node_strike_cause_check CHECK ((cause = ANY (ARRAY['failed'::text, 'launch'::text, 'lost'::text])))
);

CREATE TABLE odc.notify_state (
    single boolean DEFAULT true NOT NULL,
    mail boolean DEFAULT false NOT NULL,
    per_hour integer DEFAULT 1000 NOT NULL,
    checked_at timestamp with time zone,
    dropped bigint DEFAULT 0 NOT NULL,
    CONSTRAINT notify_state_single_check CHECK (single)
);

CREATE TABLE odc.notify_use (
    uid integer NOT NULL,
    hour timestamp with time zone NOT NULL,
    taken integer NOT NULL,
    dropped integer NOT NULL
);

CREATE TABLE odc.outbox (
    id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    uid integer NOT NULL,
    user_name text NOT NULL,
    channel text NOT NULL,
    address text,
    kind text NOT NULL,
    job_id bigint,
    facts jsonb NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone,
    sent_at timestamp with time zone,
    failed_at timestamp with time zone,
    trouble text,
    CONSTRAINT outbox_channel_check CHECK ((channel = ANY (ARRAY['mail'::text, 'webhook'::text]))),
    CONSTRAINT outbox_check CHECK (((address IS NOT NULL) = (channel = 'mail'::text)))
)
WITH (fillfactor='80');

CREATE TABLE odc.partition (
    id integer NOT NULL,
    name text NOT NULL,
    state odc.partition_state DEFAULT 'UP'::odc.partition_state NOT NULL,
    is_default boolean DEFAULT false NOT NULL,
    all_nodes boolean DEFAULT false NOT NULL,
    max_time_limit_s integer,
    default_time_limit_s integer,
    max_nodes integer,
    def_mem_per_cpu_mib integer,
    policy text DEFAULT 'odc'::text NOT NULL,
    placement text DEFAULT 'pack'::text NOT NULL,
    tier integer DEFAULT 1 NOT NULL,
    CONSTRAINT partition_def_mem_per_cpu_mib_check CHECK ((def_mem_per_cpu_mib > 0)),
    CONSTRAINT partition_default_time_limit_s_check CHECK ((default_time_limit_s > 0)),
    CONSTRAINT partition_max_nodes_check CHECK ((max_nodes > 0)),
    CONSTRAINT partition_max_time_limit_s_check CHECK ((max_time_limit_s > 0)),
    CONSTRAINT partition_placement_check CHECK ((placement = ANY (ARRAY['pack'::text, 'spread'::text]))),
    CONSTRAINT partition_tier_check CHECK (((tier >= 0) AND (tier <= 65533)))
);

CREATE TABLE odc.partition_node (
    partition_id integer NOT NULL,
    node_id integer NOT NULL
);

CREATE TABLE odc.partition_node_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    partition_id integer,
    node_id integer
);

CREATE TABLE odc.partition_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    name text,
    state odc.partition_state,
    is_default boolean,
    all_nodes boolean,
    max_time_limit_s integer,
    default_time_limit_s integer,
    max_nodes integer,
    def_mem_per_cpu_mib integer,
    policy text,
    placement text,
    tier integer
);

CREATE TABLE odc.pass (
    id bigint NOT NULL,
    term bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    last_event_id bigint,
    looked integer NOT NULL,
    started integer NOT NULL,
    took_ms real NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    snapshot pg_snapshot,
    policy text,
    start_limit integer,
    read_digest bytea,
    plan_digest bytea,
    chain_digest bytea,
    dropped bigint[]
);

CREATE TABLE odc.past_since (
    one boolean DEFAULT true NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT past_since_one_check CHECK (one)
);

CREATE TABLE odc.pending (
    job_id bigint NOT NULL,
    shape_id integer NOT NULL,
    uid integer NOT NULL,
    account_id integer NOT NULL,
    qos_id integer NOT NULL,
    nice integer NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    time_limit_s integer NOT NULL,
    attempt integer DEFAULT 1 NOT NULL,
    held odc.job_hold,
    begin_at timestamp with time zone,
    begun boolean DEFAULT true NOT NULL,
    deadline_at timestamp with time zone,
    dependency odc.dependency_state DEFAULT 'met'::odc.dependency_state NOT NULL,
    dependency_any boolean DEFAULT false NOT NULL,
    eligible_at timestamp with time zone,
    reason text,
    array_job_id bigint,
    tasks int4multirange,
    closed_tasks int4multirange,
    open_count integer DEFAULT 1 NOT NULL,
    born_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    born_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    claim_nodes integer[],
    claimed_at timestamp with time zone,
    claim_ends_at timestamp with time zone,
    lacks text,
    lacks_until timestamp with time zone,
    lacks_text text,
    lacks_job bigint,
    ready boolean GENERATED ALWAYS AS (((held IS NULL) AND begun AND (dependency = 'met'::odc.dependency_state) AND (lacks IS NULL) AND (open_count > 0))) STORED NOT NULL,
    CONSTRAINT pending_check CHECK ((num_nulls(claim_nodes, claimed_at, claim_ends_at) = ANY (ARRAY[0, 3]))),
    CONSTRAINT pending_lacks_check CHECK ((lacks = ANY (ARRAY['image'::text, 'disk'::text, 'snapshot'::text])))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.1', autovacuum_analyze_threshold='500');

CREATE TABLE odc.pending_bound (
    uid integer NOT NULL,
    tasks bigint NOT NULL,
    counted_at timestamp with time zone NOT NULL,
    CONSTRAINT pending_bound_tasks_check CHECK ((tasks >= 0))
)
WITH (fillfactor='50');

CREATE TABLE odc.pending_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    job_id bigint,
    shape_id integer,
    uid integer,
    account_id integer,
    qos_id integer,
    nice integer,
    queued_at timestamp with time zone,
    time_limit_s integer,
    attempt integer,
    held odc.job_hold,
    begin_at timestamp with time zone,
    begun boolean,
    deadline_at timestamp with time zone,
    dependency odc.dependency_state,
    dependency_any boolean,
    eligible_at timestamp with time zone,
    reason text,
    array_job_id bigint,
    tasks int4multirange,
    closed_tasks int4multirange,
    open_count integer,
    ready boolean,
    born_at timestamp with time zone,
    born_xid xid8,
    claim_nodes integer[],
    claimed_at timestamp with time zone,
    claim_ends_at timestamp with time zone,
    lacks text,
    lacks_until timestamp with time zone,
    lacks_text text,
    lacks_job bigint
);

CREATE TABLE odc.planned (
    job_id bigint NOT NULL,
    pass_id bigint NOT NULL,
    planned_start_at timestamp with time zone,
    node_names text[] NOT NULL,
    fitting integer NOT NULL,
    detail text NOT NULL,
    reason text
);

CREATE TABLE odc.planned_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    job_id bigint,
    pass_id bigint,
    planned_start_at timestamp with time zone,
    node_names text[],
    fitting integer,
    detail text,
    reason text
);

CREATE TABLE odc.planner (
    one boolean DEFAULT true NOT NULL,
    digest text NOT NULL,
    CONSTRAINT planner_one_check CHECK (one)
);

CREATE TABLE odc.policy (
    name text NOT NULL,
    ordering text NOT NULL,
    max_wait_s integer,
    backfill text DEFAULT 'order'::text NOT NULL,
    plan_depth integer DEFAULT 1 NOT NULL,
    CONSTRAINT policy_backfill_check CHECK ((backfill = ANY (ARRAY['order'::text, 'fifo'::text, 'sjbf'::text, 'safbf'::text]))),
    CONSTRAINT policy_max_wait_s_check CHECK ((max_wait_s > 0)),
    CONSTRAINT policy_name_check CHECK ((name <> ''::text)),
    CONSTRAINT policy_ordering_check CHECK ((ordering = ANY (ARRAY['fifo'::text, 'multifactor'::text, 'sjf'::text, 'saf'::text, 'wfp3'::text, 'odc'::text]))),
    CONSTRAINT policy_plan_depth_check CHECK (((plan_depth >= 0) AND (plan_depth <= 1000000)))
);

CREATE TABLE odc.policy_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    name text,
    ordering text,
    max_wait_s integer,
    backfill text,
    plan_depth integer
);

CREATE TABLE odc.prediction (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    cause text NOT NULL,
    at timestamp with time zone NOT NULL,
    plan_s integer NOT NULL,
    p10 timestamp with time zone NOT NULL,
    p50 timestamp with time zone NOT NULL,
    p90 timestamp with time zone NOT NULL,
    exact boolean NOT NULL,
    open boolean DEFAULT true NOT NULL,
    started_at timestamp with time zone,
    CONSTRAINT prediction_cause_check CHECK ((cause = ANY (ARRAY['submit'::text, 'exact'::text, 'moved'::text])))
)
PARTITION BY RANGE (job_id);

CREATE TABLE odc.prediction_0 (
    id bigint CONSTRAINT prediction_id_not_null NOT NULL,
    job_id bigint CONSTRAINT prediction_job_id_not_null NOT NULL,
    attempt integer CONSTRAINT prediction_attempt_not_null NOT NULL,
    cause text CONSTRAINT prediction_cause_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT prediction_at_not_null NOT NULL,
    plan_s integer CONSTRAINT prediction_plan_s_not_null NOT NULL,
    p10 timestamp with time zone CONSTRAINT prediction_p10_not_null NOT NULL,
    p50 timestamp with time zone CONSTRAINT prediction_p50_not_null NOT NULL,
    p90 timestamp with time zone CONSTRAINT prediction_p90_not_null NOT NULL,
    exact boolean CONSTRAINT prediction_exact_not_null NOT NULL,
    open boolean DEFAULT true CONSTRAINT prediction_open_not_null NOT NULL,
    started_at timestamp with time zone,
    CONSTRAINT prediction_cause_check CHECK ((cause = ANY (ARRAY['submit'::text, 'exact'::text, 'moved'::text])))
);

CREATE TABLE odc.priority_setting (
    one boolean DEFAULT true NOT NULL,
    max_age_s integer DEFAULT 604800 NOT NULL,
    half_life_s integer DEFAULT 604800 NOT NULL,
    CONSTRAINT priority_setting_half_life_s_check CHECK ((half_life_s > 0)),
    CONSTRAINT priority_setting_max_age_s_check CHECK ((max_age_s > 0)),
    CONSTRAINT priority_setting_one_check CHECK (one)
);

CREATE TABLE odc.priority_setting_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    one boolean,
    max_age_s integer,
    half_life_s integer
);

CREATE TABLE odc.priority_weight (
    factor text NOT NULL,
    weight integer NOT NULL,
    CONSTRAINT priority_weight_factor_check CHECK ((factor = ANY (ARRAY['age'::text, 'size'::text, 'fairshare'::text, 'qos'::text, 'partition'::text]))),
    CONSTRAINT priority_weight_weight_check CHECK (((weight >= 0) AND (weight <= 1000000)))
);

CREATE TABLE odc.priority_weight_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    factor text,
    weight integer
);

CREATE TABLE odc.qos (
    id integer NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    description text,
    restricted boolean DEFAULT false NOT NULL,
    deny_on_limit boolean DEFAULT true NOT NULL,
    usage_factor numeric(9,3) DEFAULT 1 NOT NULL,
    preempts integer[] DEFAULT '{}'::integer[] NOT NULL,
    preempt_mode text DEFAULT 'requeue'::text NOT NULL,
    exempt_s integer DEFAULT 0 NOT NULL,
    grace_s integer DEFAULT 0 NOT NULL,
    deleted_at timestamp with time zone,
    idle_warn_s integer DEFAULT 0 NOT NULL,
    idle_release_s integer DEFAULT 0 NOT NULL,
    CONSTRAINT qos_check CHECK ((id <> ALL (preempts))),
    CONSTRAINT qos_check1 CHECK (((idle_release_s = 0) OR ((idle_warn_s > 0) AND (idle_release_s >= idle_warn_s)))),
    CONSTRAINT qos_exempt_s_check CHECK ((exempt_s >= 0)),
    CONSTRAINT qos_grace_s_check CHECK (((grace_s >= 0) AND (grace_s <= 86400))),
    CONSTRAINT qos_idle_warn_s_check CHECK (((idle_warn_s = 0) OR (idle_warn_s >= 600))),
    CONSTRAINT qos_preempt_mode_check CHECK ((preempt_mode = ANY (ARRAY['requeue'::text, 'cancel'::text]))),
    CONSTRAINT qos_priority_check CHECK (((priority >= 0) AND (priority <= 1000000000))),
    CONSTRAINT qos_usage_factor_check CHECK (((usage_factor >= (0)::numeric) AND (usage_factor <= (1000)::numeric)))
);

CREATE TABLE odc.qos_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    id integer,
    name text,
    priority integer,
    description text,
    restricted boolean,
    deny_on_limit boolean,
    usage_factor numeric(9,3),
    preempts integer[],
    preempt_mode text,
    exempt_s integer,
    grace_s integer,
    deleted_at timestamp with time zone,
    idle_warn_s integer DEFAULT 0 NOT NULL,
    idle_release_s integer DEFAULT 0 NOT NULL
);

CREATE TABLE odc.refusal (
    shape_id integer NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    head_job_id bigint
);

CREATE TABLE odc.refusal_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    shape_id integer,
    reason text,
    detail text,
    head_job_id bigint
);

CREATE TABLE odc.reservation (
    job_id bigint NOT NULL,
    duration_s integer NOT NULL,
    ask jsonb DEFAULT '{}'::jsonb NOT NULL,
    launched_at timestamp with time zone,
    expires_at timestamp with time zone,
    extensions integer DEFAULT 0 NOT NULL,
    extended_s integer DEFAULT 0 NOT NULL,
    extended_at timestamp with time zone,
    stale_files boolean DEFAULT false NOT NULL,
    secondary_users text[] DEFAULT '{}'::text[] NOT NULL,
    disk_id bigint,
    build_id bigint,
    node_notice text,
    CONSTRAINT reservation_check CHECK (((launched_at IS NULL) = (expires_at IS NULL))),
    CONSTRAINT reservation_duration_s_check CHECK ((duration_s > 0))
);

CREATE TABLE odc.reservation_warning (
    job_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    minutes integer NOT NULL,
    due_at timestamp with time zone NOT NULL,
    sent_at timestamp with time zone
);

CREATE TABLE odc.resource_limit (
    scope text NOT NULL,
    scope_id integer NOT NULL,
    per text NOT NULL,
    what text NOT NULL,
    value bigint NOT NULL,
    CONSTRAINT resource_limit_check CHECK (
CASE per
    WHEN 'job'::text THEN (what <> ALL (ARRAY['jobs'::text, 'submitted'::text]))
    ELSE (what <> 'wall_s'::text)
END),
    CONSTRAINT resource_limit_check1 CHECK (((what <> 'gpu_minutes'::text) OR (per = 'job'::text) OR ((per = 'group'::text) AND (scope <> 'partition'::text)) OR ((per = 'user'::text) AND (scope = 'account'::text)))),
    CONSTRAINT resource_limit_check2 CHECK (
CASE scope
    WHEN 'account'::text THEN (per <> 'account'::text)
    WHEN 'user'::text THEN (per = ANY (ARRAY['group'::text, 'job'::text]))
    ELSE true
END),
    CONSTRAINT resource_limit_per_check CHECK ((per = ANY (ARRAY['group'::text, 'user'::text, 'account'::text, 'job'::text]))),
    CONSTRAINT resource_limit_scope_check CHECK ((scope = ANY (ARRAY['qos'::text, 'account'::text, 'user'::text, 'partition'::text]))),
    CONSTRAINT resource_limit_value_check CHECK (((value >= 0) AND (value <= '1000000000000'::bigint))),
    CONSTRAINT resource_limit_what_check CHECK ((what = ANY (ARRAY['jobs'::text, 'submitted'::text, 'gpus'::text, 'gpu_minutes'::text, 'cpus'::text, 'nodes'::text, 'wall_s'::text])))
);

CREATE TABLE odc.resource_limit_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    scope text,
    scope_id integer,
    per text,
    what text,
    value bigint
);

CREATE TABLE odc.run_time (
    uid integer NOT NULL,
    shape_id integer NOT NULL,
    time_limit_s integer NOT NULL,
    name_key bigint NOT NULL,
    parts integer[] NOT NULL,
    sorted integer[] NOT NULL,
    learnt bigint NOT NULL,
    last_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE odc.run_time_new (
    seq bigint NOT NULL,
    job_id bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.running (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    state odc.job_state NOT NULL,
    shape_id integer NOT NULL,
    partition_id integer NOT NULL,
    uid integer NOT NULL,
    account_id integer NOT NULL,
    qos_id integer NOT NULL,
    nice integer NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    eligible_at timestamp with time zone,
    deadline_at timestamp with time zone,
    array_job_id bigint,
    started_at timestamp with time zone NOT NULL,
    running_at timestamp with time zone,
    time_limit_s integer NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    node_count integer NOT NULL,
    live_members integer NOT NULL,
    exit_code integer,
    exit_signal integer,
    exit_cause text,
    exit_detail text,
    exited_at timestamp with time zone,
    intent odc.end_intent,
    intent_by text,
    intent_at timestamp with time zone,
    stop_sent_at timestamp with time zone,
    sent_ends_at timestamp with time zone,
    born_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    preempted_by bigint,
    kill_at timestamp with time zone,
    checkpoint_at timestamp with time zone,
    preemption jsonb,
    signalled boolean DEFAULT false NOT NULL,
    doomed_at timestamp with time zone,
    doomed_detail text,
    CONSTRAINT running_state_check CHECK ((state = ANY (ARRAY['CONFIGURING'::odc.job_state, 'RUNNING'::odc.job_state, 'COMPLETING'::odc.job_state])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', fillfactor='50');

CREATE TABLE odc.running_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    job_id bigint,
    attempt integer,
    state odc.job_state,
    shape_id integer,
    partition_id integer,
    uid integer,
    account_id integer,
    qos_id integer,
    nice integer,
    queued_at timestamp with time zone,
    eligible_at timestamp with time zone,
    deadline_at timestamp with time zone,
    array_job_id bigint,
    started_at timestamp with time zone,
    running_at timestamp with time zone,
    time_limit_s integer,
    ends_at timestamp with time zone,
    node_count integer,
    live_members integer,
    exit_code integer,
    exit_signal integer,
    exit_cause text,
    exit_detail text,
    exited_at timestamp with time zone,
    intent odc.end_intent,
    intent_by text,
    intent_at timestamp with time zone,
    born_xid xid8,
    preempted_by bigint,
    kill_at timestamp with time zone,
    checkpoint_at timestamp with time zone,
    preemption jsonb
);

CREATE TABLE odc.running_use (
    account_id integer NOT NULL,
    uid integer NOT NULL,
    qos_id integer NOT NULL,
    partition_id integer NOT NULL,
    shape_id integer NOT NULL,
    nodes integer NOT NULL,
    gpus integer NOT NULL,
    cpus integer NOT NULL,
    jobs integer NOT NULL,
    started_ms bigint NOT NULL,
    CONSTRAINT running_use_jobs_check CHECK ((jobs >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.server (
    one boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    system_id bigint,
    timeline integer,
    led_at timestamp with time zone,
    CONSTRAINT server_one_check CHECK (one)
);

CREATE TABLE odc.shape (
    id integer NOT NULL,
    partition_ids integer[] NOT NULL,
    node_count integer NOT NULL,
    gpus_per_node integer NOT NULL,
    gpu_type text,
    cpus_per_node integer NOT NULL,
    mem_per_node_mib integer NOT NULL,
    exclusive boolean NOT NULL,
    constraint_expr text,
    node_list text[],
    exclude_nodes text[],
    node_count_max integer,
    switches integer,
    switches_wait_s integer,
    booking_id integer,
    licences jsonb,
    tmp_per_node_mib integer DEFAULT 0 NOT NULL,
    components jsonb,
    CONSTRAINT shape_check CHECK ((node_count_max >= node_count)),
    CONSTRAINT shape_components_check CHECK ((jsonb_typeof(components) = 'array'::text)),
    CONSTRAINT shape_cpus_per_node_check CHECK ((cpus_per_node > 0)),
    CONSTRAINT shape_gpus_per_node_check CHECK ((gpus_per_node >= 0)),
    CONSTRAINT shape_licences_check CHECK (((jsonb_typeof(licences) = 'object'::text) AND (licences <> '{}'::jsonb))),
    CONSTRAINT shape_mem_per_node_mib_check CHECK ((mem_per_node_mib >= 0)),
    CONSTRAINT shape_node_count_check CHECK ((node_count > 0)),
    CONSTRAINT shape_switches_check CHECK ((switches > 0)),
    CONSTRAINT shape_switches_wait_s_check CHECK ((switches_wait_s >= 0)),
    CONSTRAINT shape_tmp_per_node_mib_check CHECK ((tmp_per_node_mib >= 0))
);

CREATE TABLE odc.shared_storage (
    uid integer NOT NULL,
    user_name text NOT NULL,
    cloud_id text,
    asked_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    trouble text
);

CREATE TABLE odc.step (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    step integer NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    command text NOT NULL,
    ranks integer[] NOT NULL,
    node_names text[] NOT NULL,
    tasks integer[] NOT NULL,
    cpus integer[] NOT NULL,
    gpu_masks bigint[] NOT NULL,
    mem_mib integer[],
    holds_cpus boolean NOT NULL,
    holds_gpus boolean NOT NULL,
    state odc.job_state DEFAULT 'RUNNING'::odc.job_state NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    exit_code integer,
    statuses jsonb,
    detail text,
    used bigint[]
)
WITH (fillfactor='80');

CREATE TABLE odc.stored_bound (
    uid integer NOT NULL,
    bytes bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT stored_bound_bytes_check CHECK ((bytes >= 0))
)
WITH (fillfactor='50');

CREATE TABLE odc.tally (
    metric text NOT NULL,
    labels text[] NOT NULL,
    value bigint DEFAULT 0 NOT NULL,
    told bigint
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.tally_aside (
    event_id bigint NOT NULL,
    why text NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE TABLE odc.tally_event (
    one boolean DEFAULT true NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    event_id bigint NOT NULL,
    CONSTRAINT tally_event_one_check CHECK (one)
)
WITH (fillfactor='50');

CREATE TABLE odc.tally_histogram (
    metric text NOT NULL,
    labels text[] NOT NULL,
    counts bigint[] NOT NULL,
    sum_ms bigint NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.term (
    one boolean DEFAULT true NOT NULL,
    term bigint NOT NULL,
    beat bigint NOT NULL,
    backend_pid integer,
    holder text,
    host text,
    taken_at timestamp with time zone,
    tokens text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT term_one_check CHECK (one)
)
WITH (fillfactor='50');

CREATE TABLE odc.usage (
    account_id integer NOT NULL,
    uid integer NOT NULL,
    qos_id integer NOT NULL,
    user_name text NOT NULL,
    used_ms bigint DEFAULT 0 NOT NULL,
    used_gpu_ms bigint DEFAULT 0 NOT NULL,
    total_gpu_ms bigint DEFAULT 0 NOT NULL,
    used_at timestamp with time zone NOT NULL,
    CONSTRAINT usage_total_gpu_ms_check CHECK ((total_gpu_ms >= 0)),
    CONSTRAINT usage_used_gpu_ms_check CHECK ((used_gpu_ms >= 0)),
    CONSTRAINT usage_used_ms_check CHECK ((used_ms >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE odc.usage_past (
    past_id bigint NOT NULL,
    past_at timestamp with time zone NOT NULL,
    past_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    past_absent boolean DEFAULT false NOT NULL,
    account_id integer,
    uid integer,
    qos_id integer,
    user_name text,
    used_ms bigint,
    used_gpu_ms bigint,
    total_gpu_ms bigint,
    used_at timestamp with time zone
);

CREATE TABLE odc.user_setting (
    uid integer NOT NULL,
    user_name text NOT NULL,
    github_user text,
    changed_at timestamp with time zone NOT NULL
);

CREATE TABLE odc.webhook (
    uid integer NOT NULL,
    user_name text NOT NULL,
    url text NOT NULL,
    kinds text[] NOT NULL,
    set_at timestamp with time zone NOT NULL
);

CREATE VIEW odc_report.attempt AS
 SELECT s.job_id,
    s.attempt,
    j.user_name AS "user",
    a.name AS account,
    q.name AS qos,
    t.name AS partition,
    (j.kind)::text AS kind,
    COALESCE(h.gpu_type, n.gpu_type) AS gpu_type,
    s.gpus,
    s.cpus,
    s.state,
    s.requeued,
    s.started_at,
    s.ended_at,
    s.live
   FROM (((((((( SELECT x.job_id,
            x.attempt,
            (x.state)::text AS state,
            x.requeued,
            COALESCE(x.gpus, 0) AS gpus,
            COALESCE(x.cpus, 0) AS cpus,
            x.started_at,
            x.ended_at,
            x.node_names[1] AS node,
            false AS live
           FROM odc.attempt x
        UNION ALL
         SELECT r.job_id,
            r.attempt,
            (r.state)::text AS state,
            false,
            h_1.gpus,
            h_1.cpus,
            r.started_at,
            GREATEST(r.started_at, COALESCE(r.exited_at, now())) AS "greatest",
            h_1.node,
            true
           FROM (odc.running r
             CROSS JOIN LATERAL ( SELECT min(o.name) AS node,
                    (sum(l.gpus))::integer AS gpus,
                    (sum(l.cpus))::integer AS cpus
                   FROM (odc.allocation l
                     JOIN odc.node o ON ((o.id = l.node_id)))
                  WHERE (l.job_id = r.job_id)) h_1)) s
     JOIN odc.job j ON ((j.id = s.job_id)))
     JOIN odc.shape h ON ((h.id = j.shape_id)))
     LEFT JOIN odc.account a ON ((a.id = j.account_id)))
     LEFT JOIN odc.qos q ON ((q.id = j.qos_id)))
     LEFT JOIN odc.running u ON ((u.job_id = s.job_id)))
     LEFT JOIN odc.partition t ON ((t.id = COALESCE(u.partition_id, j.partition_id))))
     LEFT JOIN odc.node n ON ((n.name = s.node)));

CREATE VIEW odc.candidate AS
 SELECT NULL::bigint AS job_id,
    NULL::integer AS class,
    NULL::integer AS shape,
    NULL::integer AS limit_s,
    NULL::bigint AS limit_us,
    NULL::integer AS depth,
    NULL::boolean AS claims_nodes,
    NULL::integer AS "least",
    NULL::integer AS most,
    NULL::integer AS gpus,
    NULL::integer AS cpus,
    NULL::integer AS mem,
    NULL::boolean AS exclusive,
    NULL::integer AS booking,
    NULL::integer AS blocks_most,
    NULL::bigint AS lapse,
    NULL::integer AS slot,
    NULL::integer AS alt_from,
    NULL::integer AS alt_to,
    NULL::integer AS groups_from,
    NULL::integer AS groups_to,
    NULL::integer AS use_from,
    NULL::integer AS use_to
  WHERE false;

CREATE VIEW odc.class_facts AS
 SELECT NULL::integer AS class,
    NULL::integer AS shape_id,
    NULL::integer AS limit_s,
    NULL::integer AS uid,
    NULL::integer AS account_id,
    NULL::integer AS qos_id,
    NULL::integer AS nice,
    NULL::integer AS tier,
    NULL::text AS ordering,
    NULL::integer AS depth,
    NULL::integer AS max_wait_s,
    NULL::text AS backfill,
    NULL::integer AS size,
    NULL::integer AS fair,
    NULL::double precision AS static,
    NULL::integer AS age_weight,
    NULL::integer AS max_age_s
  WHERE false;

CREATE VIEW odc.class_lists AS
 SELECT NULL::integer[] AS shape_ids,
    NULL::integer[] AS limits_s,
    NULL::integer[] AS uids,
    NULL::integer[] AS accounts,
    NULL::integer[] AS qos_ids,
    NULL::integer[] AS nices,
    NULL::timestamp with time zone[] AS head_ats,
    NULL::bigint[] AS head_ids,
    NULL::integer[] AS head_counts,
    NULL::integer[] AS tiers,
    NULL::text[] AS orderings,
    NULL::integer[] AS max_waits_s,
    NULL::text[] AS backfills,
    NULL::integer[] AS depths,
    NULL::integer[] AS sizes,
    NULL::integer[] AS fairs,
    NULL::double precision[] AS statics,
    NULL::integer AS age_weight,
    NULL::integer AS max_age_s,
    NULL::integer[] AS kept_shape_ids,
    NULL::bigint[] AS claim_jobs,
    NULL::integer[] AS claim_shapes,
    NULL::text[] AS claim_nodes,
    NULL::timestamp with time zone[] AS claim_ats
  WHERE false;

CREATE VIEW odc.decision AS
 SELECT NULL::integer AS looked,
    NULL::integer AS classes,
    NULL::boolean AS more,
    NULL::bigint[] AS start_jobs,
    NULL::integer[] AS start_partitions,
    NULL::integer[] AS start_nodes,
    NULL::integer[] AS start_limits_s,
    NULL::integer[] AS alloc_nodes,
    NULL::bigint[] AS alloc_masks,
    NULL::integer[] AS alloc_gpus,
    NULL::integer[] AS alloc_cpus,
    NULL::integer[] AS alloc_mems,
    NULL::bigint[] AS head_jobs,
    NULL::timestamp with time zone[] AS head_ats,
    NULL::text[] AS head_nodes,
    NULL::integer[] AS head_fittings,
    NULL::integer[] AS head_shapes,
    NULL::integer[] AS refused_shapes,
    NULL::text[] AS refused_reasons,
    NULL::bigint[] AS refused_heads,
    NULL::integer[] AS limited_shapes,
    NULL::integer[] AS limited_limits_s,
    NULL::integer[] AS limited_uids,
    NULL::integer[] AS limited_accounts,
    NULL::integer[] AS limited_qos,
    NULL::text[] AS limited_reasons,
    NULL::bigint[] AS victim_jobs,
    NULL::bigint[] AS victim_for,
    NULL::bigint[] AS victim_costs,
    NULL::bytea AS read_digest,
    NULL::text[] AS head_limits,
    NULL::bigint[] AS limited_heads
  WHERE false;

CREATE VIEW odc_report.dev_server AS
 SELECT v.job_id,
    j.user_name AS "user",
    a.name AS account,
    j.name,
    (q.state)::text AS state,
    q.gpus,
    q.gpu_type,
    q.node_count,
    j.submitted_at,
    q.started_at,
    v.launched_at,
    v.expires_at,
    v.extensions,
    v.disk_id,
    p.phase,
    p.at AS phase_since
   FROM ((((odc.reservation v
     JOIN odc.job j ON (((j.id = v.job_id) AND (j.state IS NULL))))
     JOIN odc.queue q ON ((q.id = v.job_id)))
     LEFT JOIN odc.account a ON ((a.id = j.account_id)))
     LEFT JOIN LATERAL ( SELECT b.phase,
            b.at
           FROM odc.box_phase b
          WHERE ((b.job_id = v.job_id) AND (v.launched_at IS NULL))
          ORDER BY b.at DESC, b.rank
         LIMIT 1) p ON (true));

CREATE VIEW odc_report.disk AS
 SELECT d.id AS disk_id,
    d.user_name AS "user",
    d.size_gib,
        CASE
            WHEN (d.deleted_at IS NOT NULL) THEN 'deleted'::text
            WHEN (d.trouble IS NOT NULL) THEN 'trouble'::text
            WHEN ((v.over_at IS NOT NULL) OR ((d.holder IS NULL) AND (s.pending > 0))) THEN 'backing-up'::text
            WHEN (d.holder IS NOT NULL) THEN 'in-use'::text
            ELSE 'available'::text
        END AS state,
    d.holder AS held_by_job,
    d.made_at,
    d.used_at,
    v.zone,
    s.completed AS snapshots,
    s.pending AS snapshots_pending,
    s.last_at AS last_snapshot_at,
    s.pending_since,
    d.deleted_at,
    d.purge_at
   FROM ((odc.disk d
     LEFT JOIN odc.disk_volume v ON (((v.disk_id = d.id) AND (v.state <> ALL (ARRAY['deleting'::text, 'deleted'::text, 'lost'::text])))))
     CROSS JOIN LATERAL ( SELECT (count(*) FILTER (WHERE (l.state = 'completed'::text)))::integer AS completed,
            (count(*) FILTER (WHERE (l.state = ANY (ARRAY['wanted'::text, 'pending'::text]))))::integer AS pending,
            max(l.completed_at) FILTER (WHERE (l.state = 'completed'::text)) AS last_at,
            min(l.asked_at) FILTER (WHERE (l.state = ANY (ARRAY['wanted'::text, 'pending'::text]))) AS pending_since
           FROM odc.disk_snapshot l
          WHERE (l.disk_id = d.id)) s);

CREATE VIEW odc_report.efficiency AS
 SELECT u.job_id,
    u.attempt,
    j.user_name AS "user",
    a.name AS account,
    j.name,
    u.gpus,
    u.ended_at,
    u.held_s,
    u.covered_s,
    (((u.gpus)::double precision * u.held_s) / (3600)::double precision) AS gpu_hours,
    (u.busy_gpu_s / NULLIF(((u.gpus)::double precision * u.covered_s), (0)::double precision)) AS busy_ratio,
    u.mem_peak_mib,
    u.energy_j,
    u.source,
    u.gave_up
   FROM ((odc.gpu_use u
     JOIN odc.job j ON ((j.id = u.job_id)))
     LEFT JOIN odc.account a ON ((a.id = j.account_id)))
  WHERE ((u.stored_at IS NOT NULL) AND (u.ended_at IS NOT NULL));

CREATE VIEW odc.ended_job AS
 SELECT j.id,
    j.array_job_id,
    j.array_task_id,
    odc._cut_tasks(j.array_tasks) AS array_tasks,
    j.name,
    j.kind,
    j.user_name AS "user",
    j.uid,
    a.name AS account,
    COALESCE(pt.name, ( SELECT string_agg(m.name, ','::text ORDER BY o.ord) AS string_agg
           FROM (unnest(j.partition_ids) WITH ORDINALITY o(id, ord)
             JOIN odc.partition m ON ((m.id = o.id)))), ( SELECT d.name
           FROM odc.partition_past d
          WHERE (d.id = COALESCE(j.partition_id, j.partition_ids[1]))
          ORDER BY d.past_id DESC
         LIMIT 1)) AS partition,
    q.name AS qos,
    j.state,
    j.reason,
    '[]'::json AS why,
    NULL::bigint AS priority,
    j.nice,
    j.submitted_at,
    j.eligible_at,
    j.begin_at,
    NULL::timestamp with time zone AS planned_start_at,
    j.started_at,
    NULL::timestamp with time zone AS checkpoint_at,
    j.ended_at,
    NULLIF(j.time_limit_s, 2147483647) AS time_limit_s,
    COALESCE(cardinality(j.node_names), s.node_count) AS node_count,
    s.node_count_max,
    s.switches,
    s.switches_wait_s,
    s.gpus_per_node,
        CASE
            WHEN (s.components IS NULL) THEN (COALESCE(cardinality(j.node_names), s.node_count) * s.gpus_per_node)
            ELSE odc._component_gpus(s.components)
        END AS gpus,
        CASE
            WHEN (s.gpus_per_node > 0) THEN COALESCE(s.gpu_type, ( SELECT n.gpu_type
               FROM odc.node n
              WHERE (n.name = j.node_names[1])))
            ELSE NULL::text
        END AS gpu_type,
    s.cpus_per_node,
    s.mem_per_node_mib,
    array_to_json(COALESCE(j.node_names, '{}'::text[])) AS node_names,
    COALESCE(j.attempt, 0) AS attempt,
    GREATEST((j.attempt - 1), 0) AS restarts,
    j.exit_code,
    j.signal,
    j.end_detail,
    odc._preemption_of(j.id, NULL::jsonb,
        CASE
            WHEN ((j.attempt > 1) OR (j.state = 'PREEMPTED'::odc.job_state)) THEN (j.attempt + 1)
            ELSE NULL::integer
        END) AS preemption,
    j.dependency,
    j.array_throttle,
    j.work_dir,
    j.stdout,
    j.stderr,
    j.comment,
    bk.name AS booking,
    s.licences,
        CASE
            WHEN (s.components IS NOT NULL) THEN odc._component_rows(s.components, j.options)
            ELSE NULL::json
        END AS components,
    j.submitted_at AS queued_at
   FROM (((((odc.job j
     LEFT JOIN odc.shape s ON ((s.id = j.shape_id)))
     LEFT JOIN odc.booking bk ON ((bk.id = s.booking_id)))
     LEFT JOIN odc.account a ON ((a.id = j.account_id)))
     LEFT JOIN odc.qos q ON ((q.id = j.qos_id)))
     LEFT JOIN odc.partition pt ON ((pt.id = j.partition_id)))
  WHERE (j.state IS NOT NULL);

CREATE VIEW odc.eta_score AS
 SELECT day,
    cause,
    scored,
    round(((inside)::numeric / (scored)::numeric), 4) AS coverage,
    round(((early)::numeric / (scored)::numeric), 4) AS early,
    round(((late)::numeric / (scored)::numeric), 4) AS late,
    round(((abs_error_s)::numeric / (scored)::numeric)) AS mean_abs_error_s,
    round(((error_s)::numeric / (scored)::numeric)) AS bias_s,
    round(((width_s)::numeric / (scored)::numeric)) AS mean_width_s
   FROM odc.eta_day
  WHERE (scored > 0);

CREATE VIEW odc_report.eta_score AS
 SELECT day,
    cause,
    scored,
    coverage,
    early,
    late,
    mean_abs_error_s,
    bias_s,
    mean_width_s
   FROM odc.eta_score;

CREATE VIEW odc.fragmentation AS
 WITH place AS (
         SELECT g.gpu_type,
            f.gpus AS free,
            (f.gpus = g.gpus) AS whole,
                CASE
                    WHEN (t.efa_per_node > 0) THEN g.efa_domain
                    ELSE NULL::text
                END AS domain,
            g.gpus
           FROM ((odc.node_free f
             JOIN odc.node_group g ON ((g.id = f.group_id)))
             JOIN odc.gpu_type t ON ((t.name = g.gpu_type)))
          WHERE (f.up AND (g.gpus > 0))
        ), domain AS (
         SELECT place.gpu_type,
            place.domain,
            count(*) AS nodes,
            count(*) FILTER (WHERE place.whole) AS nodes_whole
           FROM place
          GROUP BY place.gpu_type, place.domain
        )
 SELECT gpu_type,
    count(*) AS nodes,
    sum(gpus) AS gpus,
    sum(free) AS gpus_free,
    COALESCE(sum(free) FILTER (WHERE whole), (0)::bigint) AS gpus_whole,
    round(((COALESCE(sum(free) FILTER (WHERE (NOT whole)), (0)::bigint))::numeric / (NULLIF(sum(free), 0))::numeric), 4) AS fragmented,
    count(*) FILTER (WHERE whole) AS nodes_whole,
    ( SELECT max(d.nodes_whole) AS max
           FROM domain d
          WHERE (d.gpu_type = p.gpu_type)) AS largest_gang,
    sum(free) AS fits_1,
    sum((free / 2)) AS fits_2,
    sum((free / 4)) AS fits_4,
    sum((free / 8)) AS fits_8,
    ( SELECT json_agg(json_build_object('domain', d.domain, 'nodes', d.nodes, 'nodes_whole', d.nodes_whole) ORDER BY d.domain NULLS FIRST) AS json_agg
           FROM domain d
          WHERE (d.gpu_type = p.gpu_type)) AS domains
   FROM place p
  GROUP BY gpu_type;

CREATE VIEW odc_report.gpu_hours_by_day AS
 SELECT d.day,
    s."user",
    s.account,
    s.partition,
    s.gpu_type,
    s.kind,
    count(DISTINCT s.job_id) AS jobs,
    round((sum(((s.gpus)::numeric * EXTRACT(epoch FROM (LEAST(s.ended_at, (d.day + '24:00:00'::interval)) - GREATEST(s.started_at, d.day))))) / (3600)::numeric), 4) AS gpu_hours
   FROM (odc_report.attempt s
     CROSS JOIN LATERAL generate_series(GREATEST(date_trunc('day'::text, s.started_at, 'UTC'::text), (date_trunc('day'::text, now(), 'UTC'::text) - '92 days'::interval)), s.ended_at, '24:00:00'::interval) d(day))
  WHERE ((s.gpus > 0) AND (d.day < s.ended_at) AND (s.ended_at > (date_trunc('day'::text, now(), 'UTC'::text) - '92 days'::interval)))
  GROUP BY d.day, s."user", s.account, s.partition, s.gpu_type, s.kind;

CREATE VIEW odc_report.node AS
 SELECT n.name,
    n.gpu_type,
    n.zone,
    (n.state)::text AS state,
    n.gpus,
    (n.gpus - f.gpus) AS gpus_used,
    n.cpus,
    (n.cpus - f.cpus) AS cpus_used,
    f.jobs,
    n.reason,
    n.state_at,
    q.since AS quarantined_at
   FROM ((odc.node n
     JOIN odc.node_free f ON ((f.node_id = n.id)))
     LEFT JOIN odc.node_quarantine q ON ((q.node_id = n.id)))
  WHERE ((n.state <> 'DOWN'::odc.node_state) OR (NOT (EXISTS ( SELECT
           FROM odc.elastic_gone e
          WHERE (e.node_id = n.id)))));

CREATE VIEW odc.pending_job AS
 SELECT p.job_id AS id,
        CASE
            WHEN (p.tasks IS NULL) THEN j.array_job_id
            ELSE p.job_id
        END AS array_job_id,
    j.array_task_id,
        CASE
            WHEN (p.tasks IS NOT NULL) THEN odc._short_tasks(p.tasks, j.array_throttle)
            ELSE NULL::text
        END AS array_tasks,
    j.name,
    j.kind,
    j.user_name AS "user",
    p.uid,
    a.name AS account,
        CASE
            WHEN (cardinality(j.partition_ids) = 1) THEN pt.name
            ELSE ( SELECT string_agg(m.name, ','::text ORDER BY o.ord) AS string_agg
               FROM (unnest(j.partition_ids) WITH ORDINALITY o(id, ord)
                 JOIN odc.partition m ON ((m.id = o.id))))
        END AS partition,
    q.name AS qos,
    'PENDING'::odc.job_state AS state,
        CASE
            WHEN (p.held IS NOT NULL) THEN COALESCE(p.reason,
            CASE p.held
                WHEN 'user'::odc.job_hold THEN 'JobHeldUser'::text
                ELSE 'JobHeldAdmin'::text
            END)
            WHEN (p.dependency = 'never'::odc.dependency_state) THEN 'DependencyNeverSatisfied'::text
            WHEN (p.dependency = 'waiting'::odc.dependency_state) THEN 'Dependency'::text
            WHEN (NOT p.begun) THEN COALESCE(p.reason, 'BeginTime'::text)
            WHEN (p.lacks IS NOT NULL) THEN
            CASE p.lacks
                WHEN 'image'::text THEN 'ImageBuild'::text
                WHEN 'disk'::text THEN 'DiskBusy'::text
                ELSE 'SnapshotPending'::text
            END
            WHEN ((p.open_count = 0) AND (p.tasks <@ COALESCE(p.closed_tasks, '{}'::int4multirange))) THEN 'Dependency'::text
            WHEN (p.open_count = 0) THEN 'JobArrayTaskLimit'::text
            WHEN (pl.planned_start_at IS NOT NULL) THEN COALESCE(pl.reason, 'Resources'::text)
            WHEN (en.job_id IS NOT NULL) THEN 'Resources'::text
            WHEN (lm.reason IS NOT NULL) THEN lm.reason
            ELSE COALESCE(rf.reason, p.reason, 'None'::text)
        END AS reason,
        CASE
            WHEN (p.ready AND (en.job_id IS NOT NULL)) THEN json_build_array(json_build_object('cause', 'node', 'text', odc._why_new_node(p.job_id)))
            WHEN (p.ready AND (COALESCE(pl.reason,
            CASE
                WHEN (pl.job_id IS NULL) THEN lm.reason
                ELSE NULL::text
            END) IS NOT NULL)) THEN json_build_array(json_strip_nulls(json_build_object('cause', 'limit', 'text', odc._limit_short(COALESCE(pl.reason, lm.reason), q.name, a.name, s.licences), 'limit', COALESCE(pl.reason, lm.reason), 'until', odc._iso(pl.planned_start_at))))
            WHEN (p.ready AND (pl.job_id IS NULL)) THEN COALESCE(rf.why, '[]'::json)
            ELSE odc._why_blocked(p.job_id)
        END AS why,
    NULL::bigint AS priority,
    p.nice,
    j.submitted_at,
    p.eligible_at,
    p.begin_at,
        CASE
            WHEN p.ready THEN pl.planned_start_at
            ELSE NULL::timestamp with time zone
        END AS planned_start_at,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS checkpoint_at,
    NULL::timestamp with time zone AS ended_at,
    NULLIF(p.time_limit_s, 2147483647) AS time_limit_s,
    s.node_count,
    s.node_count_max,
    s.switches,
    s.switches_wait_s,
    s.gpus_per_node,
        CASE
            WHEN (s.components IS NULL) THEN (s.node_count * s.gpus_per_node)
            ELSE odc._component_gpus(s.components)
        END AS gpus,
    s.gpu_type,
    s.cpus_per_node,
    s.mem_per_node_mib,
    '[]'::json AS node_names,
    p.attempt,
    (p.attempt - 1) AS restarts,
    NULL::integer AS exit_code,
    NULL::integer AS signal,
    NULL::text AS end_detail,
    odc._preemption_of(p.job_id, NULL::jsonb, NULLIF(p.attempt, 1)) AS preemption,
    j.dependency,
    j.array_throttle,
    j.work_dir,
    j.stdout,
    j.stderr,
    j.comment,
    bk.name AS booking,
    s.licences,
        CASE
            WHEN (s.components IS NOT NULL) THEN odc._component_rows(s.components, j.options)
            ELSE NULL::json
        END AS components,
    p.queued_at
   FROM ((((((((((odc.pending p
     JOIN odc.job j ON ((j.id = p.job_id)))
     LEFT JOIN odc.shape s ON ((s.id = p.shape_id)))
     LEFT JOIN odc.booking bk ON ((bk.id = s.booking_id)))
     LEFT JOIN odc.account a ON ((a.id = p.account_id)))
     LEFT JOIN odc.qos q ON ((q.id = p.qos_id)))
     LEFT JOIN odc.partition pt ON ((pt.id = j.partition_ids[1])))
     LEFT JOIN odc.planned pl ON ((pl.job_id = p.job_id)))
     LEFT JOIN odc.elastic_need en ON ((en.job_id = p.job_id)))
     LEFT JOIN odc.limited lm ON (((lm.shape_id = p.shape_id) AND (lm.time_limit_s = p.time_limit_s) AND (lm.uid = p.uid) AND (lm.account_id = p.account_id) AND (lm.qos_id = p.qos_id))))
     LEFT JOIN ( SELECT r.shape_id,
            r.reason,
            json_build_array(json_strip_nulls(json_build_object('cause',
                CASE
                    WHEN (r.head_job_id IS NULL) THEN 'node'::text
                    ELSE 'planned_job'::text
                END, 'text', r.detail, 'job_id', r.head_job_id, 'until', odc._iso(h.planned_start_at)))) AS why
           FROM (odc.refusal r
             LEFT JOIN odc.planned h ON ((h.job_id = r.head_job_id)))) rf ON ((rf.shape_id = p.shape_id)));

CREATE VIEW odc.picked_nodes AS
 SELECT NULL::integer[] AS picks,
    NULL::integer AS alternative,
    NULL::bigint AS blocked_at,
    NULL::bigint[] AS points,
    NULL::bigint[] AS protected,
    NULL::bigint[] AS free,
    NULL::bigint[] AS allocs,
    NULL::integer AS placed
  WHERE false;

CREATE VIEW odc_report.plan AS
 SELECT p.job_id,
    j.user_name AS "user",
    a.name AS account,
    j.name,
    t.name AS partition,
    s.node_count,
    s.gpus_per_node,
    s.gpu_type,
    p.planned_start_at,
    p.node_names,
    e.p10 AS eta_p10,
    e.p50 AS eta_p50,
    e.p90 AS eta_p90,
    p.detail,
    p.pass_id AS moved_by_pass
   FROM ((((((odc.planned p
     JOIN odc.pending w ON (((w.job_id = p.job_id) AND w.ready)))
     JOIN odc.job j ON ((j.id = p.job_id)))
     JOIN odc.shape s ON ((s.id = w.shape_id)))
     LEFT JOIN odc.account a ON ((a.id = j.account_id)))
     LEFT JOIN odc.partition t ON ((t.id = j.partition_ids[1])))
     LEFT JOIN odc.eta e ON ((e.job_id = p.job_id)));

CREATE VIEW odc.queue AS
 SELECT running_job.id,
    running_job."user",
    running_job.name,
    running_job.partition,
    running_job.qos,
    running_job.gpus,
    running_job.gpu_type,
    running_job.node_count,
    running_job.state,
    running_job.reason,
    running_job.submitted_at,
    running_job.started_at,
    running_job.planned_start_at,
    running_job.time_limit_s,
    running_job.node_names,
    running_job.array_tasks
   FROM odc.running_job
UNION ALL
 SELECT pending_job.id,
    pending_job."user",
    pending_job.name,
    pending_job.partition,
    pending_job.qos,
    pending_job.gpus,
    pending_job.gpu_type,
    pending_job.node_count,
    pending_job.state,
    pending_job.reason,
    pending_job.submitted_at,
    pending_job.started_at,
    pending_job.planned_start_at,
    pending_job.time_limit_s,
    pending_job.node_names,
    pending_job.array_tasks
   FROM odc.pending_job;

CREATE VIEW odc_report.queue AS
 SELECT q.id AS job_id,
    j.array_job_id,
    j.array_task_id,
    q.array_tasks,
    q."user",
    a.name AS account,
    q.name,
    q.partition,
    q.qos,
    (j.kind)::text AS kind,
    (q.state)::text AS state,
    q.reason,
    q.gpus,
    q.gpu_type,
    q.node_count,
    q.submitted_at,
    q.started_at,
    r.ends_at,
    q.planned_start_at,
    e.p10 AS eta_p10,
    e.p50 AS eta_p50,
    e.p90 AS eta_p90,
    q.time_limit_s
   FROM ((((odc.queue q
     JOIN odc.job j ON ((j.id = q.id)))
     LEFT JOIN odc.account a ON ((a.id = j.account_id)))
     LEFT JOIN odc.running r ON ((r.job_id = q.id)))
     LEFT JOIN odc.eta e ON ((e.job_id = q.id)));

CREATE VIEW odc.release_lists AS
 SELECT NULL::bigint[] AS ats,
    NULL::integer[] AS nodes,
    NULL::integer[] AS gpus,
    NULL::integer[] AS cpus,
    NULL::integer[] AS mems,
    NULL::bigint AS complete_to,
    NULL::integer AS first_ends,
    NULL::bigint AS digest
  WHERE false;

CREATE VIEW odc.running_job AS
 SELECT r.job_id AS id,
    j.array_job_id,
    j.array_task_id,
    NULL::text AS array_tasks,
    j.name,
    j.kind,
    j.user_name AS "user",
    r.uid,
    a.name AS account,
    pt.name AS partition,
    q.name AS qos,
    r.state,
    NULL::text AS reason,
    '[]'::json AS why,
    NULL::bigint AS priority,
    r.nice,
    j.submitted_at,
    r.eligible_at,
    j.begin_at,
    NULL::timestamp with time zone AS planned_start_at,
    r.started_at,
    r.checkpoint_at,
    NULL::timestamp with time zone AS ended_at,
    NULLIF(r.time_limit_s, 2147483647) AS time_limit_s,
    r.node_count,
    s.node_count_max,
    s.switches,
    s.switches_wait_s,
    s.gpus_per_node,
        CASE
            WHEN (s.components IS NULL) THEN (r.node_count * s.gpus_per_node)
            ELSE odc._component_gpus(s.components)
        END AS gpus,
        CASE
            WHEN (s.gpus_per_node > 0) THEN COALESCE(s.gpu_type, ( SELECT min(n.gpu_type) AS min
               FROM (odc.allocation al
                 JOIN odc.node n ON ((n.id = al.node_id)))
              WHERE (al.job_id = r.job_id)))
            ELSE NULL::text
        END AS gpu_type,
    s.cpus_per_node,
    s.mem_per_node_mib,
    array_to_json(ARRAY( SELECT n.name
           FROM (odc.allocation al
             JOIN odc.node n ON ((n.id = al.node_id)))
          WHERE (al.job_id = r.job_id)
          ORDER BY al.rank)) AS node_names,
    r.attempt,
    (r.attempt - 1) AS restarts,
    NULL::integer AS exit_code,
    NULL::integer AS signal,
    NULL::text AS end_detail,
    odc._preemption_of(r.job_id, r.preemption, NULLIF(r.attempt, 1)) AS preemption,
    j.dependency,
    j.array_throttle,
    j.work_dir,
    j.stdout,
    j.stderr,
    j.comment,
    bk.name AS booking,
    s.licences,
        CASE
            WHEN (s.components IS NOT NULL) THEN odc._component_rows(s.components, j.options)
            ELSE NULL::json
        END AS components,
    r.queued_at
   FROM ((((((odc.running r
     JOIN odc.job j ON ((j.id = r.job_id)))
     LEFT JOIN odc.shape s ON ((s.id = r.shape_id)))
     LEFT JOIN odc.booking bk ON ((bk.id = s.booking_id)))
     LEFT JOIN odc.account a ON ((a.id = r.account_id)))
     LEFT JOIN odc.qos q ON ((q.id = r.qos_id)))
     LEFT JOIN odc.partition pt ON ((pt.id = r.partition_id)));

CREATE VIEW odc.shape_lists AS
 SELECT NULL::integer[] AS shape_ids,
    NULL::integer[] AS leasts,
    NULL::integer[] AS mosts,
    NULL::integer[] AS gpus,
    NULL::integer[] AS cpus,
    NULL::integer[] AS mems,
    NULL::boolean[] AS exclusives,
    NULL::boolean[] AS listed,
    NULL::integer[] AS bookings,
    NULL::integer[] AS switches,
    NULL::integer[] AS waits_s,
    NULL::integer[] AS alt_from,
    NULL::integer[] AS alt_to,
    NULL::integer[] AS group_from,
    NULL::integer[] AS group_to,
    NULL::integer[] AS alt_groups,
    NULL::integer[] AS alt_partitions,
    NULL::boolean[] AS alt_spreads,
    NULL::bigint[] AS alt_words,
    NULL::integer[] AS component_from,
    NULL::integer[] AS component_to,
    NULL::integer[] AS component_shapes,
    NULL::integer[] AS component_ords,
    NULL::jsonb[] AS component_lists,
    NULL::text[] AS refused,
    NULL::integer[] AS dead,
    NULL::boolean[] AS "full",
    NULL::integer[] AS depths,
    NULL::integer[] AS use_from,
    NULL::integer[] AS use_to,
    NULL::integer[] AS buckets,
    NULL::bigint[] AS needs,
    NULL::bigint[] AS mores,
    NULL::bigint[] AS lefts,
    NULL::boolean[] AS consumes,
    NULL::text[] AS limit_reasons,
    NULL::text[] AS limit_scopes,
    NULL::integer[] AS limit_scope_ids,
    NULL::text[] AS limit_pers,
    NULL::text[] AS limit_whats,
    NULL::integer[] AS limit_accounts,
    NULL::integer[] AS limit_uids,
    NULL::bigint[] AS spans,
    NULL::integer[] AS class_shapes,
    NULL::boolean[] AS defers,
    NULL::boolean[] AS preempts,
    NULL::boolean AS preempting,
    NULL::bytea AS digest
  WHERE false;

ALTER TABLE ONLY odc.account
    ADD CONSTRAINT account_name_key UNIQUE (name);

ALTER TABLE ONLY odc.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.account_setting
    ADD CONSTRAINT account_setting_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.allocation
    ADD CONSTRAINT allocation_pkey PRIMARY KEY (job_id, rank);

ALTER TABLE ONLY odc.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY odc.array_job
    ADD CONSTRAINT array_job_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.association
    ADD CONSTRAINT association_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (job_id, attempt);

ALTER TABLE ONLY odc.booking
    ADD CONSTRAINT booking_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.booking_node
    ADD CONSTRAINT booking_node_pkey PRIMARY KEY (booking_id, node_id);

ALTER TABLE ONLY odc.box_jupyter
    ADD CONSTRAINT box_jupyter_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.box_key
    ADD CONSTRAINT box_key_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.box_look
    ADD CONSTRAINT box_look_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.box_phase
    ADD CONSTRAINT box_phase_pkey PRIMARY KEY (job_id, attempt, rank, phase);

ALTER TABLE ONLY odc.box_port
    ADD CONSTRAINT box_port_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.box_restart
    ADD CONSTRAINT box_restart_pkey PRIMARY KEY (job_id, attempt, rank, ended_at);

ALTER TABLE ONLY odc.build
    ADD CONSTRAINT build_digest_target_key UNIQUE (digest, target);

ALTER TABLE ONLY odc.build
    ADD CONSTRAINT build_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.build_asker
    ADD CONSTRAINT build_asker_pkey PRIMARY KEY (build_id, uid);

ALTER TABLE ONLY odc.build_context
    ADD CONSTRAINT build_context_pkey PRIMARY KEY (build_id);

ALTER TABLE ONLY odc.coordinator
    ADD CONSTRAINT coordinator_pkey PRIMARY KEY (account_id, uid);

ALTER TABLE ONLY odc.cron_entry
    ADD CONSTRAINT cron_entry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.cron_table
    ADD CONSTRAINT cron_table_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY odc.dependency
    ADD CONSTRAINT dependency_pkey PRIMARY KEY (job_id, ord);

ALTER TABLE ONLY odc.disk
    ADD CONSTRAINT disk_holder_key UNIQUE (holder);

ALTER TABLE ONLY odc.disk
    ADD CONSTRAINT disk_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.disk_import
    ADD CONSTRAINT disk_import_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.disk_snapshot
    ADD CONSTRAINT disk_snapshot_cloud_id_key UNIQUE (cloud_id);

ALTER TABLE ONLY odc.disk_snapshot
    ADD CONSTRAINT disk_snapshot_operation_key UNIQUE (operation);

ALTER TABLE ONLY odc.disk_snapshot
    ADD CONSTRAINT disk_snapshot_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.disk_stray
    ADD CONSTRAINT disk_stray_pkey PRIMARY KEY (cloud_id);

ALTER TABLE ONLY odc.disk_volume
    ADD CONSTRAINT disk_volume_cloud_id_key UNIQUE (cloud_id);

ALTER TABLE ONLY odc.disk_volume
    ADD CONSTRAINT disk_volume_operation_key UNIQUE (operation);

ALTER TABLE ONLY odc.disk_volume
    ADD CONSTRAINT disk_volume_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.elastic_gone
    ADD CONSTRAINT elastic_gone_pkey PRIMARY KEY (node_id);

ALTER TABLE ONLY odc.elastic_group
    ADD CONSTRAINT elastic_group_pkey PRIMARY KEY (name);

ALTER TABLE ONLY odc.elastic_instance
    ADD CONSTRAINT elastic_instance_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY odc.elastic_need
    ADD CONSTRAINT elastic_need_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.eta
    ADD CONSTRAINT eta_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.eta_class
    ADD CONSTRAINT eta_class_pkey PRIMARY KEY (class);

ALTER TABLE ONLY odc.eta_day
    ADD CONSTRAINT eta_day_pkey PRIMARY KEY (day, cause);

ALTER TABLE ONLY odc.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.gpu
    ADD CONSTRAINT gpu_pkey PRIMARY KEY (node_id, gpu_index);

ALTER TABLE ONLY odc.gpu_meter
    ADD CONSTRAINT gpu_meter_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.gpu_now
    ADD CONSTRAINT gpu_now_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.gpu_type
    ADD CONSTRAINT gpu_type_pkey PRIMARY KEY (name);

ALTER TABLE ONLY odc.gpu_use
    ADD CONSTRAINT gpu_use_pkey PRIMARY KEY (job_id, attempt);

ALTER TABLE ONLY odc.history_export
    ADD CONSTRAINT history_export_pkey PRIMARY KEY (name);

ALTER TABLE ONLY odc.history_gone
    ADD CONSTRAINT history_gone_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (uid, key);

ALTER TABLE ONLY odc.install
    ADD CONSTRAINT install_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.job_mail
    ADD CONSTRAINT job_mail_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.job_text
    ADD CONSTRAINT job_text_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY odc.kept_output
    ADD CONSTRAINT kept_output_pkey PRIMARY KEY (job_id, attempt, rank);

ALTER TABLE ONLY odc.licence
    ADD CONSTRAINT licence_pkey PRIMARY KEY (name);

ALTER TABLE ONLY odc.limited
    ADD CONSTRAINT limited_pkey PRIMARY KEY (shape_id, time_limit_s, uid, account_id, qos_id);

ALTER TABLE ONLY odc.local_host
    ADD CONSTRAINT local_host_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.login_signature
    ADD CONSTRAINT login_signature_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY odc.login_user
    ADD CONSTRAINT login_user_pkey PRIMARY KEY (user_name);

ALTER TABLE ONLY odc.login_user
    ADD CONSTRAINT login_user_uid_key UNIQUE (uid);

ALTER TABLE ONLY odc.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY odc.node
    ADD CONSTRAINT node_name_key UNIQUE (name);

ALTER TABLE ONLY odc.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.node_free
    ADD CONSTRAINT node_free_pkey PRIMARY KEY (node_id);

ALTER TABLE ONLY odc.node_group
    ADD CONSTRAINT node_group_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.node_quarantine
    ADD CONSTRAINT node_quarantine_canary_key UNIQUE (canary);

ALTER TABLE ONLY odc.node_quarantine
    ADD CONSTRAINT node_quarantine_pkey PRIMARY KEY (node_id);

ALTER TABLE ONLY odc.node_strike
    ADD CONSTRAINT node_strike_pkey PRIMARY KEY (node_id, uid, script_digest, cause);

ALTER TABLE ONLY odc.notify_state
    ADD CONSTRAINT notify_state_pkey PRIMARY KEY (single);

ALTER TABLE ONLY odc.notify_use
    ADD CONSTRAINT notify_use_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY odc.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.partition
    ADD CONSTRAINT partition_name_key UNIQUE (name);

ALTER TABLE ONLY odc.partition
    ADD CONSTRAINT partition_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.partition_node
    ADD CONSTRAINT partition_node_pkey PRIMARY KEY (partition_id, node_id);

ALTER TABLE ONLY odc.pass
    ADD CONSTRAINT pass_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.past_since
    ADD CONSTRAINT past_since_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.pending
    ADD CONSTRAINT pending_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.pending_bound
    ADD CONSTRAINT pending_bound_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY odc.planned
    ADD CONSTRAINT planned_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.planner
    ADD CONSTRAINT planner_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.policy
    ADD CONSTRAINT policy_pkey PRIMARY KEY (name);

ALTER TABLE ONLY odc.prediction
    ADD CONSTRAINT prediction_pkey PRIMARY KEY (job_id, id);

ALTER TABLE ONLY odc.prediction_0
    ADD CONSTRAINT prediction_0_pkey PRIMARY KEY (job_id, id);

ALTER TABLE ONLY odc.priority_setting
    ADD CONSTRAINT priority_setting_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.priority_weight
    ADD CONSTRAINT priority_weight_pkey PRIMARY KEY (factor);

ALTER TABLE ONLY odc.qos
    ADD CONSTRAINT qos_name_key UNIQUE (name);

ALTER TABLE ONLY odc.qos
    ADD CONSTRAINT qos_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.refusal
    ADD CONSTRAINT refusal_pkey PRIMARY KEY (shape_id);

ALTER TABLE ONLY odc.reservation
    ADD CONSTRAINT reservation_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.reservation_warning
    ADD CONSTRAINT reservation_warning_pkey PRIMARY KEY (job_id, expires_at, minutes);

ALTER TABLE ONLY odc.resource_limit
    ADD CONSTRAINT resource_limit_pkey PRIMARY KEY (scope, scope_id, per, what);

ALTER TABLE ONLY odc.run_time
    ADD CONSTRAINT run_time_pkey PRIMARY KEY (uid, shape_id, time_limit_s, name_key);

ALTER TABLE ONLY odc.running
    ADD CONSTRAINT running_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY odc.running_use
    ADD CONSTRAINT running_use_pkey PRIMARY KEY (account_id, uid, qos_id, partition_id, shape_id, nodes, gpus, cpus);

ALTER TABLE ONLY odc.server
    ADD CONSTRAINT server_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.shape
    ADD CONSTRAINT shape_pkey PRIMARY KEY (id);

ALTER TABLE ONLY odc.shared_storage
    ADD CONSTRAINT shared_storage_cloud_id_key UNIQUE (cloud_id);

ALTER TABLE ONLY odc.shared_storage
    ADD CONSTRAINT shared_storage_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY odc.step
    ADD CONSTRAINT step_job_id_attempt_key_key UNIQUE (job_id, attempt, key);

ALTER TABLE ONLY odc.step
    ADD CONSTRAINT step_pkey PRIMARY KEY (job_id, attempt, step);

ALTER TABLE ONLY odc.stored_bound
    ADD CONSTRAINT stored_bound_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY odc.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (metric, labels);

ALTER TABLE ONLY odc.tally_aside
    ADD CONSTRAINT tally_aside_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY odc.tally_event
    ADD CONSTRAINT tally_event_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.tally_histogram
    ADD CONSTRAINT tally_histogram_pkey PRIMARY KEY (metric, labels);

ALTER TABLE ONLY odc.term
    ADD CONSTRAINT term_pkey PRIMARY KEY (one);

ALTER TABLE ONLY odc.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (account_id, uid, qos_id);

ALTER TABLE ONLY odc.user_setting
    ADD CONSTRAINT user_setting_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY odc.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (uid);

CREATE INDEX account_parent ON odc.account USING btree (parent) WHERE (parent IS NOT NULL);

CREATE INDEX account_past_id_idx ON odc.account_past USING btree (id);

CREATE INDEX account_past_past_at_idx ON odc.account_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX account_setting_past_one_idx ON odc.account_setting_past USING btree (one);

CREATE INDEX account_setting_past_past_at_idx ON odc.account_setting_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX allocation_ends ON odc.allocation USING btree (ends_at);

CREATE INDEX allocation_past_job_id_rank_idx ON odc.allocation_past USING btree (job_id, rank);

CREATE INDEX allocation_past_past_at_idx ON odc.allocation_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX api_key_origin ON odc.api_key USING btree (origin) WHERE (origin IS NOT NULL);

CREATE INDEX array_job_past_job_id_idx ON odc.array_job_past USING btree (job_id);

CREATE INDEX array_job_past_past_at_idx ON odc.array_job_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE UNIQUE INDEX association_one_default ON odc.association USING btree (uid) WHERE is_default;

CREATE INDEX association_past_id_idx ON odc.association_past USING btree (id);

CREATE INDEX association_past_past_at_idx ON odc.association_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX association_user ON odc.association USING btree (uid);

CREATE UNIQUE INDEX association_value ON odc.association USING btree (account_id, uid, partition_id) NULLS NOT DISTINCT;

CREATE INDEX attempt_ended ON ONLY odc.attempt USING brin (ended_at);

CREATE UNIQUE INDEX booking_live_name ON odc.booking USING btree (name) WHERE (state = ANY (ARRAY['PLANNED'::odc.booking_state, 'ACTIVE'::odc.booking_state]));

CREATE INDEX booking_name ON odc.booking USING btree (name, id);

CREATE INDEX booking_node_node ON odc.booking_node USING btree (node_id);

CREATE INDEX booking_node_past_booking_id_node_id_idx ON odc.booking_node_past USING btree (booking_id, node_id);

CREATE INDEX booking_node_past_past_at_idx ON odc.booking_node_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX booking_past_id_idx ON odc.booking_past USING btree (id);

CREATE INDEX booking_past_past_at_idx ON odc.booking_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX build_context_uid ON odc.build_context USING btree (uid, at);

CREATE INDEX build_going ON odc.build USING btree (id) WHERE (state = 'building'::odc.build_state);

CREATE INDEX coordinator_past_account_id_uid_idx ON odc.coordinator_past USING btree (account_id, uid);

CREATE INDEX coordinator_past_past_at_idx ON odc.coordinator_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX cron_entry_due ON odc.cron_entry USING btree (next_at, id) WHERE (next_at IS NOT NULL);

CREATE INDEX cron_entry_job ON odc.cron_entry USING btree (last_job_id) WHERE (last_job_id IS NOT NULL);

CREATE INDEX cron_entry_uid ON odc.cron_entry USING btree (uid);

CREATE INDEX dependency_due ON odc.dependency USING btree (due_at) WHERE ((state = 'waiting'::odc.dependency_state) AND (due_at IS NOT NULL));

CREATE INDEX dependency_past_job_id_ord_idx ON odc.dependency_past USING btree (job_id, ord);

CREATE INDEX dependency_past_past_at_idx ON odc.dependency_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX dependency_singleton ON odc.dependency USING btree (name_key) WHERE ((state = 'waiting'::odc.dependency_state) AND (kind = 'singleton'::odc.dependency_kind));

CREATE INDEX dependency_target ON odc.dependency USING btree (target_id) WHERE (state = 'waiting'::odc.dependency_state);

CREATE INDEX disk_import_due ON odc.disk_import USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE UNIQUE INDEX disk_imported ON odc.disk USING btree (imported_user, imported_name) WHERE ((imported_user IS NOT NULL) AND (deleted_at IS NULL));

CREATE UNIQUE INDEX disk_name ON odc.disk USING btree (uid, name) WHERE (deleted_at IS NULL);

CREATE INDEX disk_snapshot_disk ON odc.disk_snapshot USING btree (disk_id, id);

CREATE INDEX disk_snapshot_due ON odc.disk_snapshot USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE UNIQUE INDEX disk_snapshot_going ON odc.disk_snapshot USING btree (volume_id) WHERE (state = ANY (ARRAY['wanted'::text, 'pending'::text]));

CREATE UNIQUE INDEX disk_snapshot_saving ON odc.disk_snapshot USING btree (source) WHERE ((state = ANY (ARRAY['wanted'::text, 'pending'::text])) AND (NOT adopted));

CREATE INDEX disk_volume_due ON odc.disk_volume USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX disk_volume_job ON odc.disk_volume USING btree (job_id);

CREATE UNIQUE INDEX disk_volume_live ON odc.disk_volume USING btree (disk_id) WHERE (state <> ALL (ARRAY['deleting'::text, 'deleted'::text, 'lost'::text]));

CREATE INDEX elastic_instance_group ON odc.elastic_instance USING btree (group_name);

CREATE UNIQUE INDEX elastic_instance_node ON odc.elastic_instance USING btree (node_id);

CREATE INDEX event_final ON ONLY odc.event USING btree (xid, id);

CREATE INDEX event_job ON ONLY odc.event USING btree (job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX gpu_type_past_name_idx ON odc.gpu_type_past USING btree (name);

CREATE INDEX gpu_type_past_past_at_idx ON odc.gpu_type_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX gpu_use_owed ON odc.gpu_use USING btree (ended_at) WHERE (stored_at IS NULL);

CREATE INDEX gpu_uuid ON odc.gpu USING btree (uuid);

CREATE INDEX idempotency_made ON odc.idempotency USING btree (made_at);

CREATE INDEX job_array ON ONLY odc.job USING btree (array_job_id, array_task_id) WHERE (array_job_id IS NOT NULL);

CREATE INDEX job_ended ON ONLY odc.job USING btree (state, ended_at DESC, id DESC) WHERE (state IS NOT NULL);

CREATE INDEX job_past_id_idx ON odc.job_past USING btree (id);

CREATE INDEX job_past_past_at_idx ON odc.job_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX job_user_ended ON ONLY odc.job USING btree (user_name, ended_at DESC, id DESC) WHERE (state IS NOT NULL);

CREATE INDEX licence_past_name_idx ON odc.licence_past USING btree (name);

CREATE INDEX licence_past_past_at_idx ON odc.licence_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX limited_past_past_at_idx ON odc.limited_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX limited_past_shape_id_time_limit_s_uid_account_id_qos_id_idx ON odc.limited_past USING btree (shape_id, time_limit_s, uid, account_id, qos_id);

CREATE UNIQUE INDEX login_user_github ON odc.login_user USING btree (lower(github_user));

CREATE INDEX node_free_past_node_id_idx ON odc.node_free_past USING btree (node_id);

CREATE INDEX node_free_past_past_at_idx ON odc.node_free_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX node_group_past_id_idx ON odc.node_group_past USING btree (id);

CREATE INDEX node_group_past_past_at_idx ON odc.node_group_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE UNIQUE INDEX node_group_value ON odc.node_group USING btree (gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids, tmp_mib) NULLS NOT DISTINCT;

CREATE INDEX node_past_at ON odc.node_past USING btree (id, past_at);

CREATE INDEX node_past_id_idx ON odc.node_past USING btree (id);

CREATE INDEX node_past_past_at_idx ON odc.node_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX node_strike_script ON odc.node_strike USING btree (script_digest, uid);

CREATE INDEX node_topology ON odc.node USING btree (id) WHERE (topology <> '{}'::text[]);

CREATE INDEX outbox_done ON odc.outbox USING btree (created_at);

CREATE INDEX outbox_due ON odc.outbox USING btree (channel, next_at, id) WHERE (next_at IS NOT NULL);

CREATE INDEX outbox_job ON odc.outbox USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX outbox_waiting ON odc.outbox USING btree (uid, channel, id) WHERE (next_at IS NOT NULL);

CREATE INDEX partition_node_past_partition_id_node_id_idx ON odc.partition_node_past USING btree (partition_id, node_id);

CREATE INDEX partition_node_past_past_at_idx ON odc.partition_node_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE UNIQUE INDEX partition_one_default ON odc.partition USING btree (is_default) WHERE is_default;

CREATE INDEX partition_past_id_idx ON odc.partition_past USING btree (id);

CREATE INDEX partition_past_past_at_idx ON odc.partition_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX pass_at ON odc.pass USING btree (at);

CREATE INDEX pending_array ON odc.pending USING btree (array_job_id) WHERE (array_job_id IS NOT NULL);

CREATE INDEX pending_begin ON odc.pending USING btree (begin_at) WHERE (NOT begun);

CREATE INDEX pending_claim ON odc.pending USING btree (claimed_at, job_id) WHERE (claim_nodes IS NOT NULL);

CREATE INDEX pending_class ON odc.pending USING btree (shape_id, time_limit_s, uid, account_id, qos_id, nice, queued_at, job_id) INCLUDE (open_count) WHERE ready;

CREATE INDEX pending_deadline ON odc.pending USING btree (deadline_at) WHERE (deadline_at IS NOT NULL);

CREATE INDEX pending_image ON odc.pending USING btree (job_id) WHERE (lacks = 'image'::text);

CREATE INDEX pending_past_job_id_idx ON odc.pending_past USING btree (job_id);

CREATE INDEX pending_past_past_at_idx ON odc.pending_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX pending_user ON odc.pending USING btree (uid);

CREATE INDEX planned_past_job_id_idx ON odc.planned_past USING btree (job_id);

CREATE INDEX planned_past_past_at_idx ON odc.planned_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX policy_past_name_idx ON odc.policy_past USING btree (name);

CREATE INDEX policy_past_past_at_idx ON odc.policy_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX prediction_0_at_idx ON odc.prediction_0 USING btree (at);

CREATE INDEX prediction_0_job_id_idx ON odc.prediction_0 USING btree (job_id) WHERE open;

CREATE INDEX prediction_at ON ONLY odc.prediction USING btree (at);

CREATE INDEX prediction_open ON ONLY odc.prediction USING btree (job_id) WHERE open;

CREATE INDEX priority_setting_past_one_idx ON odc.priority_setting_past USING btree (one);

CREATE INDEX priority_setting_past_past_at_idx ON odc.priority_setting_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX priority_weight_past_factor_idx ON odc.priority_weight_past USING btree (factor);

CREATE INDEX priority_weight_past_past_at_idx ON odc.priority_weight_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX qos_past_id_idx ON odc.qos_past USING btree (id);

CREATE INDEX qos_past_past_at_idx ON odc.qos_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX refusal_past_past_at_idx ON odc.refusal_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX refusal_past_shape_id_idx ON odc.refusal_past USING btree (shape_id);

CREATE INDEX reservation_build ON odc.reservation USING btree (build_id, job_id) WHERE (build_id IS NOT NULL);

CREATE INDEX reservation_disk ON odc.reservation USING btree (disk_id) WHERE (disk_id IS NOT NULL);

CREATE INDEX resource_limit_past_past_at_idx ON odc.resource_limit_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX resource_limit_past_scope_scope_id_per_what_idx ON odc.resource_limit_past USING btree (scope, scope_id, per, what);

CREATE INDEX running_intent ON odc.running USING btree (job_id) WHERE (intent IS NOT NULL);

CREATE INDEX running_moved ON odc.running USING btree (job_id) WHERE (sent_ends_at IS DISTINCT FROM ends_at);

CREATE INDEX running_past_job_id_idx ON odc.running_past USING btree (job_id);

CREATE INDEX running_past_past_at_idx ON odc.running_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX running_preempted ON odc.running USING btree (preempted_by) WHERE (preempted_by IS NOT NULL);

CREATE INDEX shape_booking ON odc.shape USING btree (booking_id) WHERE (booking_id IS NOT NULL);

CREATE INDEX shape_components ON odc.shape USING btree (id) WHERE (components IS NOT NULL);

CREATE INDEX shape_hash ON odc.shape USING btree (hash_record_extended(ROW(node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive, partition_ids, constraint_expr, node_list, exclude_nodes, node_count_max, switches, switches_wait_s, booking_id, licences), (0)::bigint));

CREATE INDEX shape_licences ON odc.shape USING btree (id) WHERE (licences IS NOT NULL);

CREATE UNIQUE INDEX shape_value ON odc.shape USING btree (node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive, hash_array_extended(partition_ids, (0)::bigint), md5(constraint_expr), hash_array_extended(node_list, (0)::bigint), hash_array_extended(exclude_nodes, (0)::bigint), node_count_max, switches, switches_wait_s, booking_id, jsonb_hash_extended(licences, (0)::bigint), tmp_per_node_mib, md5((components)::text)) NULLS NOT DISTINCT;

CREATE INDEX step_running ON odc.step USING btree (job_id) WHERE (state = 'RUNNING'::odc.job_state);

CREATE INDEX usage_past_account_id_uid_qos_id_idx ON odc.usage_past USING btree (account_id, uid, qos_id);

CREATE INDEX usage_past_past_at_idx ON odc.usage_past USING brin (past_at) WITH (pages_per_range='16', autosummarize='on');

CREATE TRIGGER facts_delete AFTER DELETE ON odc.account REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.account REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.account FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.name IS DISTINCT FROM new.name) OR (old.parent IS DISTINCT FROM new.parent) OR (old.description IS DISTINCT FROM new.description) OR (old.organisation IS DISTINCT FROM new.organisation) OR (old.shares IS DISTINCT FROM new.shares) OR (old.default_qos_id IS DISTINCT FROM new.default_qos_id) OR (old.qos_ids IS DISTINCT FROM new.qos_ids) OR (old.deleted_at IS DISTINCT FROM new.deleted_at))) EXECUTE FUNCTION odc_past.keep_account();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.account FOR EACH ROW EXECUTE FUNCTION odc_past.keep_account();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.account FOR EACH ROW EXECUTE FUNCTION odc_past.note_account();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.account_setting REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.account_setting REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.account_setting REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.account_setting FOR EACH ROW WHEN (((old.one IS DISTINCT FROM new.one) OR (old.enforce IS DISTINCT FROM new.enforce) OR (old.cpus_per_gpu IS DISTINCT FROM new.cpus_per_gpu))) EXECUTE FUNCTION odc_past.keep_account_setting();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.account_setting FOR EACH ROW EXECUTE FUNCTION odc_past.keep_account_setting();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.account_setting FOR EACH ROW EXECUTE FUNCTION odc_past.note_account_setting();

CREATE TRIGGER past_of_changed AFTER UPDATE OF job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at ON odc.allocation FOR EACH ROW WHEN (((old.job_id IS DISTINCT FROM new.job_id) OR (old.rank IS DISTINCT FROM new.rank) OR (old.node_id IS DISTINCT FROM new.node_id) OR (old.gpu_mask IS DISTINCT FROM new.gpu_mask) OR (old.gpus IS DISTINCT FROM new.gpus) OR (old.cpus IS DISTINCT FROM new.cpus) OR (old.mem_mib IS DISTINCT FROM new.mem_mib) OR (old.ends_at IS DISTINCT FROM new.ends_at))) EXECUTE FUNCTION odc_past.keep_allocation();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.allocation REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION odc_past.keep_all_allocation();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.array_job FOR EACH ROW WHEN (((old.job_id IS DISTINCT FROM new.job_id) OR (old.task_min IS DISTINCT FROM new.task_min) OR (old.task_max IS DISTINCT FROM new.task_max) OR (old.task_count IS DISTINCT FROM new.task_count) OR (old.task_step IS DISTINCT FROM new.task_step) OR (old.throttle IS DISTINCT FROM new.throttle) OR (old.running IS DISTINCT FROM new.running) OR (old.started IS DISTINCT FROM new.started) OR (old.ended_ok IS DISTINCT FROM new.ended_ok) OR (old.ended_not_ok IS DISTINCT FROM new.ended_not_ok))) EXECUTE FUNCTION odc_past.keep_array_job();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.array_job FOR EACH ROW EXECUTE FUNCTION odc_past.keep_array_job();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.association REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.association REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.association FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.account_id IS DISTINCT FROM new.account_id) OR (old.uid IS DISTINCT FROM new.uid) OR (old.user_name IS DISTINCT FROM new.user_name) OR (old.partition_id IS DISTINCT FROM new.partition_id) OR (old.shares IS DISTINCT FROM new.shares) OR (old.is_default IS DISTINCT FROM new.is_default) OR (old.default_qos_id IS DISTINCT FROM new.default_qos_id) OR (old.qos_ids IS DISTINCT FROM new.qos_ids) OR (old.made_at IS DISTINCT FROM new.made_at))) EXECUTE FUNCTION odc_past.keep_association();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.association FOR EACH ROW EXECUTE FUNCTION odc_past.keep_association();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.association FOR EACH ROW EXECUTE FUNCTION odc_past.note_association();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.booking REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.booking REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.booking REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.booking FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.name IS DISTINCT FROM new.name) OR (old.kind IS DISTINCT FROM new.kind) OR (old.state IS DISTINCT FROM new.state) OR (old.state_at IS DISTINCT FROM new.state_at) OR (old.starts_at IS DISTINCT FROM new.starts_at) OR (old.duration_s IS DISTINCT FROM new.duration_s) OR (old.repeats IS DISTINCT FROM new.repeats) OR (old.repeats_until IS DISTINCT FROM new.repeats_until) OR (old.node_list IS DISTINCT FROM new.node_list) OR (old.gpu_type IS DISTINCT FROM new.gpu_type) OR (old.partition_id IS DISTINCT FROM new.partition_id) OR (old.all_nodes IS DISTINCT FROM new.all_nodes) OR (old.node_count IS DISTINCT FROM new.node_count) OR (old.user_names IS DISTINCT FROM new.user_names) OR (old.uids IS DISTINCT FROM new.uids) OR (old.account_ids IS DISTINCT FROM new.account_ids) OR (old.ignore_running IS DISTINCT FROM new.ignore_running) OR (old.comment IS DISTINCT FROM new.comment) OR (old.reason IS DISTINCT FROM new.reason) OR (old.created_by IS DISTINCT FROM new.created_by) OR (old.created_at IS DISTINCT FROM new.created_at) OR (old.zone IS DISTINCT FROM new.zone))) EXECUTE FUNCTION odc_past.keep_booking();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.booking FOR EACH ROW EXECUTE FUNCTION odc_past.keep_booking();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.booking FOR EACH ROW EXECUTE FUNCTION odc_past.note_booking();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.booking_node REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.booking_node REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.booking_node REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.booking_node FOR EACH ROW WHEN (((old.booking_id IS DISTINCT FROM new.booking_id) OR (old.node_id IS DISTINCT FROM new.node_id))) EXECUTE FUNCTION odc_past.keep_booking_node();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.booking_node FOR EACH ROW EXECUTE FUNCTION odc_past.keep_booking_node();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.booking_node FOR EACH ROW EXECUTE FUNCTION odc_past.note_booking_node();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.coordinator FOR EACH ROW WHEN (((old.account_id IS DISTINCT FROM new.account_id) OR (old.uid IS DISTINCT FROM new.uid) OR (old.user_name IS DISTINCT FROM new.user_name))) EXECUTE FUNCTION odc_past.keep_coordinator();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.coordinator FOR EACH ROW EXECUTE FUNCTION odc_past.keep_coordinator();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.coordinator FOR EACH ROW EXECUTE FUNCTION odc_past.note_coordinator();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.dependency FOR EACH ROW WHEN (((old.job_id IS DISTINCT FROM new.job_id) OR (old.ord IS DISTINCT FROM new.ord) OR (old.kind IS DISTINCT FROM new.kind) OR (old.target_id IS DISTINCT FROM new.target_id) OR (old.target_task IS DISTINCT FROM new.target_task) OR (old.delay_s IS DISTINCT FROM new.delay_s) OR (old.due_at IS DISTINCT FROM new.due_at) OR (old.name_key IS DISTINCT FROM new.name_key) OR (old.state IS DISTINCT FROM new.state))) EXECUTE FUNCTION odc_past.keep_dependency();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.dependency FOR EACH ROW EXECUTE FUNCTION odc_past.keep_dependency();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.dependency FOR EACH ROW EXECUTE FUNCTION odc_past.note_dependency();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.gpu_type FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.label IS DISTINCT FROM new.label) OR (old.gpus_per_node IS DISTINCT FROM new.gpus_per_node) OR (old.gpu_mem_mib IS DISTINCT FROM new.gpu_mem_mib) OR (old.cpus_per_node IS DISTINCT FROM new.cpus_per_node) OR (old.mem_per_node_mib IS DISTINCT FROM new.mem_per_node_mib) OR (old.efa_per_node IS DISTINCT FROM new.efa_per_node) OR (old.instance_type IS DISTINCT FROM new.instance_type))) EXECUTE FUNCTION odc_past.keep_gpu_type();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.gpu_type FOR EACH ROW EXECUTE FUNCTION odc_past.keep_gpu_type();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.gpu_type FOR EACH ROW EXECUTE FUNCTION odc_past.note_gpu_type();

CREATE TRIGGER job_end_is_final BEFORE UPDATE ON odc.job FOR EACH ROW WHEN (((old.state IS NOT NULL) AND ((new.state IS DISTINCT FROM old.state) OR (new.ended_at IS DISTINCT FROM old.ended_at)))) EXECUTE FUNCTION odc._refuse_change_of_ended();

CREATE TRIGGER past_of_changed AFTER UPDATE OF id, array_task_id, array_tasks, name, partition_ids, shape_id, nice, begin_at, deadline_at, time_limit_s, dependency, array_throttle, comment ON odc.job FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.array_task_id IS DISTINCT FROM new.array_task_id) OR (old.array_tasks IS DISTINCT FROM new.array_tasks) OR (old.name IS DISTINCT FROM new.name) OR (old.partition_ids IS DISTINCT FROM new.partition_ids) OR (old.shape_id IS DISTINCT FROM new.shape_id) OR (old.nice IS DISTINCT FROM new.nice) OR (old.begin_at IS DISTINCT FROM new.begin_at) OR (old.deadline_at IS DISTINCT FROM new.deadline_at) OR (old.time_limit_s IS DISTINCT FROM new.time_limit_s) OR (old.dependency IS DISTINCT FROM new.dependency) OR (old.array_throttle IS DISTINCT FROM new.array_throttle) OR (old.comment IS DISTINCT FROM new.comment))) EXECUTE FUNCTION odc_past.keep_job();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.job FOR EACH ROW EXECUTE FUNCTION odc_past.keep_job();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.licence REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.licence REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.licence FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.total IS DISTINCT FROM new.total))) EXECUTE FUNCTION odc_past.keep_licence();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.licence FOR EACH ROW EXECUTE FUNCTION odc_past.keep_licence();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.licence FOR EACH ROW EXECUTE FUNCTION odc_past.note_licence();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.limited FOR EACH ROW WHEN (((old.shape_id IS DISTINCT FROM new.shape_id) OR (old.time_limit_s IS DISTINCT FROM new.time_limit_s) OR (old.uid IS DISTINCT FROM new.uid) OR (old.account_id IS DISTINCT FROM new.account_id) OR (old.qos_id IS DISTINCT FROM new.qos_id) OR (old.reason IS DISTINCT FROM new.reason))) EXECUTE FUNCTION odc_past.keep_limited();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.limited FOR EACH ROW EXECUTE FUNCTION odc_past.keep_limited();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.limited FOR EACH ROW EXECUTE FUNCTION odc_past.note_limited();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.node FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.name IS DISTINCT FROM new.name) OR (old.gpu_type IS DISTINCT FROM new.gpu_type) OR (old.gpus IS DISTINCT FROM new.gpus) OR (old.cpus IS DISTINCT FROM new.cpus) OR (old.mem_mib IS DISTINCT FROM new.mem_mib) OR (old.zone IS DISTINCT FROM new.zone) OR (old.efa_domain IS DISTINCT FROM new.efa_domain) OR (old.features IS DISTINCT FROM new.features) OR (old.state IS DISTINCT FROM new.state) OR (old.reason IS DISTINCT FROM new.reason) OR (old.reason_by IS DISTINCT FROM new.reason_by) OR (old.state_at IS DISTINCT FROM new.state_at) OR (old.declared IS DISTINCT FROM new.declared) OR (old.topology IS DISTINCT FROM new.topology) OR (old.foreign_gpu_mask IS DISTINCT FROM new.foreign_gpu_mask) OR (old.foreign_cpus IS DISTINCT FROM new.foreign_cpus) OR (old.foreign_mem_mib IS DISTINCT FROM new.foreign_mem_mib) OR (old.tmp_mib IS DISTINCT FROM new.tmp_mib))) EXECUTE FUNCTION odc_past.keep_node();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.node FOR EACH ROW EXECUTE FUNCTION odc_past.keep_node();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.node FOR EACH ROW EXECUTE FUNCTION odc_past.note_node();

CREATE TRIGGER past_of_changed AFTER UPDATE OF node_id, group_id, up ON odc.node_free FOR EACH ROW WHEN (((old.node_id IS DISTINCT FROM new.node_id) OR (old.group_id IS DISTINCT FROM new.group_id) OR (old.up IS DISTINCT FROM new.up))) EXECUTE FUNCTION odc_past.keep_node_free();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.node_free FOR EACH ROW EXECUTE FUNCTION odc_past.keep_node_free();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.node_free FOR EACH ROW EXECUTE FUNCTION odc_past.note_node_free();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.node_group FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.gpu_type IS DISTINCT FROM new.gpu_type) OR (old.gpus IS DISTINCT FROM new.gpus) OR (old.cpus IS DISTINCT FROM new.cpus) OR (old.mem_mib IS DISTINCT FROM new.mem_mib) OR (old.efa_domain IS DISTINCT FROM new.efa_domain) OR (old.features IS DISTINCT FROM new.features) OR (old.partition_ids IS DISTINCT FROM new.partition_ids) OR (old.tmp_mib IS DISTINCT FROM new.tmp_mib))) EXECUTE FUNCTION odc_past.keep_node_group();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.node_group FOR EACH ROW EXECUTE FUNCTION odc_past.keep_node_group();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.node_group FOR EACH ROW EXECUTE FUNCTION odc_past.note_node_group();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.partition REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.partition REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.partition FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.name IS DISTINCT FROM new.name) OR (old.state IS DISTINCT FROM new.state) OR (old.is_default IS DISTINCT FROM new.is_default) OR (old.all_nodes IS DISTINCT FROM new.all_nodes) OR (old.max_time_limit_s IS DISTINCT FROM new.max_time_limit_s) OR (old.default_time_limit_s IS DISTINCT FROM new.default_time_limit_s) OR (old.max_nodes IS DISTINCT FROM new.max_nodes) OR (old.def_mem_per_cpu_mib IS DISTINCT FROM new.def_mem_per_cpu_mib) OR (old.policy IS DISTINCT FROM new.policy) OR (old.placement IS DISTINCT FROM new.placement) OR (old.tier IS DISTINCT FROM new.tier))) EXECUTE FUNCTION odc_past.keep_partition();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.partition FOR EACH ROW EXECUTE FUNCTION odc_past.keep_partition();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.partition FOR EACH ROW EXECUTE FUNCTION odc_past.note_partition();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.partition_node REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.partition_node REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.partition_node REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.partition_node FOR EACH ROW WHEN (((old.partition_id IS DISTINCT FROM new.partition_id) OR (old.node_id IS DISTINCT FROM new.node_id))) EXECUTE FUNCTION odc_past.keep_partition_node();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.partition_node FOR EACH ROW EXECUTE FUNCTION odc_past.keep_partition_node();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.partition_node FOR EACH ROW EXECUTE FUNCTION odc_past.note_partition_node();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.pending REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION odc_past.keep_all_pending();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.pending REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION odc_past.keep_all_pending();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.planned FOR EACH ROW WHEN (((old.job_id IS DISTINCT FROM new.job_id) OR (old.pass_id IS DISTINCT FROM new.pass_id) OR (old.planned_start_at IS DISTINCT FROM new.planned_start_at) OR (old.node_names IS DISTINCT FROM new.node_names) OR (old.fitting IS DISTINCT FROM new.fitting) OR (old.detail IS DISTINCT FROM new.detail) OR (old.reason IS DISTINCT FROM new.reason))) EXECUTE FUNCTION odc_past.keep_planned();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.planned FOR EACH ROW EXECUTE FUNCTION odc_past.keep_planned();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.planned FOR EACH ROW EXECUTE FUNCTION odc_past.note_planned();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.policy REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.policy REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.policy FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.ordering IS DISTINCT FROM new.ordering) OR (old.max_wait_s IS DISTINCT FROM new.max_wait_s) OR (old.backfill IS DISTINCT FROM new.backfill) OR (old.plan_depth IS DISTINCT FROM new.plan_depth))) EXECUTE FUNCTION odc_past.keep_policy();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.policy FOR EACH ROW EXECUTE FUNCTION odc_past.keep_policy();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.policy FOR EACH ROW EXECUTE FUNCTION odc_past.note_policy();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.priority_setting REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.priority_setting REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.priority_setting REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.priority_setting FOR EACH ROW WHEN (((old.one IS DISTINCT FROM new.one) OR (old.max_age_s IS DISTINCT FROM new.max_age_s) OR (old.half_life_s IS DISTINCT FROM new.half_life_s))) EXECUTE FUNCTION odc_past.keep_priority_setting();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.priority_setting FOR EACH ROW EXECUTE FUNCTION odc_past.keep_priority_setting();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.priority_setting FOR EACH ROW EXECUTE FUNCTION odc_past.note_priority_setting();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.priority_weight REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.priority_weight REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.priority_weight REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.priority_weight FOR EACH ROW WHEN (((old.factor IS DISTINCT FROM new.factor) OR (old.weight IS DISTINCT FROM new.weight))) EXECUTE FUNCTION odc_past.keep_priority_weight();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.priority_weight FOR EACH ROW EXECUTE FUNCTION odc_past.keep_priority_weight();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.priority_weight FOR EACH ROW EXECUTE FUNCTION odc_past.note_priority_weight();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.qos REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.qos REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.qos FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.name IS DISTINCT FROM new.name) OR (old.priority IS DISTINCT FROM new.priority) OR (old.description IS DISTINCT FROM new.description) OR (old.restricted IS DISTINCT FROM new.restricted) OR (old.deny_on_limit IS DISTINCT FROM new.deny_on_limit) OR (old.usage_factor IS DISTINCT FROM new.usage_factor) OR (old.preempts IS DISTINCT FROM new.preempts) OR (old.preempt_mode IS DISTINCT FROM new.preempt_mode) OR (old.exempt_s IS DISTINCT FROM new.exempt_s) OR (old.grace_s IS DISTINCT FROM new.grace_s) OR (old.deleted_at IS DISTINCT FROM new.deleted_at) OR (old.idle_warn_s IS DISTINCT FROM new.idle_warn_s) OR (old.idle_release_s IS DISTINCT FROM new.idle_release_s))) EXECUTE FUNCTION odc_past.keep_qos();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.qos FOR EACH ROW EXECUTE FUNCTION odc_past.keep_qos();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.qos FOR EACH ROW EXECUTE FUNCTION odc_past.note_qos();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.refusal FOR EACH ROW WHEN (((old.shape_id IS DISTINCT FROM new.shape_id) OR (old.reason IS DISTINCT FROM new.reason) OR (old.detail IS DISTINCT FROM new.detail) OR (old.head_job_id IS DISTINCT FROM new.head_job_id))) EXECUTE FUNCTION odc_past.keep_refusal();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.refusal FOR EACH ROW EXECUTE FUNCTION odc_past.keep_refusal();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.refusal FOR EACH ROW EXECUTE FUNCTION odc_past.note_refusal();

CREATE TRIGGER facts_delete AFTER DELETE ON odc.resource_limit REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_insert AFTER INSERT ON odc.resource_limit REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER facts_update AFTER UPDATE ON odc.resource_limit REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION odc._facts_changed();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.resource_limit FOR EACH ROW WHEN (((old.scope IS DISTINCT FROM new.scope) OR (old.scope_id IS DISTINCT FROM new.scope_id) OR (old.per IS DISTINCT FROM new.per) OR (old.what IS DISTINCT FROM new.what) OR (old.value IS DISTINCT FROM new.value))) EXECUTE FUNCTION odc_past.keep_resource_limit();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.resource_limit FOR EACH ROW EXECUTE FUNCTION odc_past.keep_resource_limit();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.resource_limit FOR EACH ROW EXECUTE FUNCTION odc_past.note_resource_limit();

CREATE TRIGGER facts_limit AFTER UPDATE OF time_limit_s ON odc.running FOR EACH ROW WHEN ((old.time_limit_s <> new.time_limit_s)) EXECUTE FUNCTION odc._limit_moved();

CREATE TRIGGER past_of_changed AFTER UPDATE OF job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice, queued_at, eligible_at, deadline_at, array_job_id, started_at, running_at, time_limit_s, ends_at, node_count, live_members, exit_code, exit_signal, exit_cause, exit_detail, exited_at, intent, intent_by, intent_at, born_xid, preempted_by, kill_at, checkpoint_at, preemption ON odc.running FOR EACH ROW WHEN (((old.job_id IS DISTINCT FROM new.job_id) OR (old.attempt IS DISTINCT FROM new.attempt) OR (old.state IS DISTINCT FROM new.state) OR (old.shape_id IS DISTINCT FROM new.shape_id) OR (old.partition_id IS DISTINCT FROM new.partition_id) OR (old.uid IS DISTINCT FROM new.uid) OR (old.account_id IS DISTINCT FROM new.account_id) OR (old.qos_id IS DISTINCT FROM new.qos_id) OR (old.nice IS DISTINCT FROM new.nice) OR (old.queued_at IS DISTINCT FROM new.queued_at) OR (old.eligible_at IS DISTINCT FROM new.eligible_at) OR (old.deadline_at IS DISTINCT FROM new.deadline_at) OR (old.array_job_id IS DISTINCT FROM new.array_job_id) OR (old.started_at IS DISTINCT FROM new.started_at) OR (old.running_at IS DISTINCT FROM new.running_at) OR (old.time_limit_s IS DISTINCT FROM new.time_limit_s) OR (old.ends_at IS DISTINCT FROM new.ends_at) OR (old.node_count IS DISTINCT FROM new.node_count) OR (old.live_members IS DISTINCT FROM new.live_members) OR (old.exit_code IS DISTINCT FROM new.exit_code) OR (old.exit_signal IS DISTINCT FROM new.exit_signal) OR (old.exit_cause IS DISTINCT FROM new.exit_cause) OR (old.exit_detail IS DISTINCT FROM new.exit_detail) OR (old.exited_at IS DISTINCT FROM new.exited_at) OR (old.intent IS DISTINCT FROM new.intent) OR (old.intent_by IS DISTINCT FROM new.intent_by) OR (old.intent_at IS DISTINCT FROM new.intent_at) OR (old.born_xid IS DISTINCT FROM new.born_xid) OR (old.preempted_by IS DISTINCT FROM new.preempted_by) OR (old.kill_at IS DISTINCT FROM new.kill_at) OR (old.checkpoint_at IS DISTINCT FROM new.checkpoint_at) OR (old.preemption IS DISTINCT FROM new.preemption))) EXECUTE FUNCTION odc_past.keep_running();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.running REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION odc_past.keep_all_running();

CREATE TRIGGER past_of_changed AFTER UPDATE ON odc.usage FOR EACH ROW WHEN (((old.account_id IS DISTINCT FROM new.account_id) OR (old.uid IS DISTINCT FROM new.uid) OR (old.qos_id IS DISTINCT FROM new.qos_id) OR (old.user_name IS DISTINCT FROM new.user_name) OR (old.used_ms IS DISTINCT FROM new.used_ms) OR (old.used_gpu_ms IS DISTINCT FROM new.used_gpu_ms) OR (old.total_gpu_ms IS DISTINCT FROM new.total_gpu_ms) OR (old.used_at IS DISTINCT FROM new.used_at))) EXECUTE FUNCTION odc_past.keep_usage();

CREATE TRIGGER past_of_gone AFTER DELETE ON odc.usage FOR EACH ROW EXECUTE FUNCTION odc_past.keep_usage();

CREATE TRIGGER past_of_new AFTER INSERT ON odc.usage FOR EACH ROW EXECUTE FUNCTION odc_past.note_usage();

ALTER TABLE ONLY odc.account
    ADD CONSTRAINT account_parent_fkey FOREIGN KEY (parent) REFERENCES odc.account(id);

ALTER TABLE ONLY odc.association
    ADD CONSTRAINT association_account_id_fkey FOREIGN KEY (account_id) REFERENCES odc.account(id);

ALTER TABLE ONLY odc.association
    ADD CONSTRAINT association_default_qos_id_fkey FOREIGN KEY (default_qos_id) REFERENCES odc.qos(id);

ALTER TABLE ONLY odc.association
    ADD CONSTRAINT association_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES odc.partition(id) ON DELETE CASCADE;

ALTER TABLE ONLY odc.booking
    ADD CONSTRAINT booking_gpu_type_fkey FOREIGN KEY (gpu_type) REFERENCES odc.gpu_type(name);

ALTER TABLE ONLY odc.booking
    ADD CONSTRAINT booking_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES odc.partition(id) ON DELETE SET NULL;

ALTER TABLE ONLY odc.booking_node
    ADD CONSTRAINT booking_node_booking_id_fkey FOREIGN KEY (booking_id) REFERENCES odc.booking(id) ON DELETE CASCADE;

ALTER TABLE ONLY odc.booking_node
    ADD CONSTRAINT booking_node_node_id_fkey FOREIGN KEY (node_id) REFERENCES odc.node(id) ON DELETE CASCADE;

ALTER TABLE ONLY odc.build_asker
    ADD CONSTRAINT build_asker_build_id_fkey FOREIGN KEY (build_id) REFERENCES odc.build(id);

ALTER TABLE ONLY odc.build_context
    ADD CONSTRAINT build_context_build_id_fkey FOREIGN KEY (build_id) REFERENCES odc.build(id);

ALTER TABLE ONLY odc.coordinator
    ADD CONSTRAINT coordinator_account_id_fkey FOREIGN KEY (account_id) REFERENCES odc.account(id);

ALTER TABLE ONLY odc.cron_entry
    ADD CONSTRAINT cron_entry_uid_fkey FOREIGN KEY (uid) REFERENCES odc.cron_table(uid) ON DELETE CASCADE;

ALTER TABLE ONLY odc.elastic_gone
    ADD CONSTRAINT elastic_gone_node_id_fkey FOREIGN KEY (node_id) REFERENCES odc.node(id);

ALTER TABLE ONLY odc.elastic_instance
    ADD CONSTRAINT elastic_instance_group_name_fkey FOREIGN KEY (group_name) REFERENCES odc.elastic_group(name) ON DELETE CASCADE;

ALTER TABLE ONLY odc.elastic_instance
    ADD CONSTRAINT elastic_instance_node_id_fkey FOREIGN KEY (node_id) REFERENCES odc.node(id);

ALTER TABLE ONLY odc.elastic_need
    ADD CONSTRAINT elastic_need_group_name_fkey FOREIGN KEY (group_name) REFERENCES odc.elastic_group(name) ON DELETE CASCADE;

ALTER TABLE ONLY odc.node
    ADD CONSTRAINT node_gpu_type_fkey FOREIGN KEY (gpu_type) REFERENCES odc.gpu_type(name);

ALTER TABLE ONLY odc.node_free
    ADD CONSTRAINT node_free_group_id_fkey FOREIGN KEY (group_id) REFERENCES odc.node_group(id);

ALTER TABLE ONLY odc.node_free
    ADD CONSTRAINT node_free_node_id_fkey FOREIGN KEY (node_id) REFERENCES odc.node(id) ON DELETE CASCADE;

ALTER TABLE ONLY odc.node_group
    ADD CONSTRAINT node_group_gpu_type_fkey FOREIGN KEY (gpu_type) REFERENCES odc.gpu_type(name);

ALTER TABLE ONLY odc.partition
    ADD CONSTRAINT partition_policy_fkey FOREIGN KEY (policy) REFERENCES odc.policy(name);

ALTER TABLE ONLY odc.partition_node
    ADD CONSTRAINT partition_node_node_id_fkey FOREIGN KEY (node_id) REFERENCES odc.node(id) ON DELETE CASCADE;

ALTER TABLE ONLY odc.partition_node
    ADD CONSTRAINT partition_node_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES odc.partition(id) ON DELETE CASCADE;

ALTER TABLE ONLY odc.shape
    ADD CONSTRAINT shape_gpu_type_fkey FOREIGN KEY (gpu_type) REFERENCES odc.gpu_type(name);

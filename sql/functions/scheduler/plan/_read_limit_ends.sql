-- odc._read_limit_ends: read when running jobs give back limits, once per limit and pass, and only of limits of which a
-- job lacks something. With them comes every limit of which too little is left for some class: one query is enough, mostly.
-- Arguments  p_unread  limits;  p_lefts, p_spans  see _limits_now;  p_used  see _limit_ends
--            p_shapes  what _load_pass returned;  p_limits_s  per class
--            p_digest, p_release_digest  whether to compute digests, and that of what was read before
--            p_gives  read before, see _limit_gives
-- Returns    spans: with what is left at their starts;  gives: with those read now;  release_digest
create or replace function odc._read_limit_ends(
    p_now timestamptz, p_unread integer[], p_lefts bigint[], p_spans bigint[], p_gives bigint[], p_used integer[], p_shapes record,
    p_limits_s integer[], p_digest boolean, p_release_digest bigint, out spans bigint[], out gives bigint[], out release_digest bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_wanted integer[] := array(
        select u.bucket from unnest(p_unread) as u (bucket)
         union
        select u.bucket from unnest(p_shapes.buckets, p_shapes.needs) as u (bucket, need)
         where p_lefts[u.bucket] < u.need and p_spans[5 * u.bucket - 2] = 0
         order by 1);
    v_read record;  v_from integer := cardinality(p_gives) + 1;  v_bucket integer;  v_span integer;
begin
    v_read := _limit_gives(p_now, v_wanted, p_shapes.limit_scopes, p_shapes.limit_scope_ids, p_shapes.limit_pers, p_shapes.limit_whats,
                           p_shapes.limit_accounts, p_shapes.limit_uids);
    release_digest := case when p_digest then hash_record_extended(v_read, p_release_digest) end;
    spans := p_spans;  gives := p_gives || v_read.gives;
    for i in 1..cardinality(v_wanted) loop
        v_bucket := v_wanted[i];
        spans[5 * v_bucket - 2] := 1;  spans[5 * v_bucket] := v_from;  spans[5 * v_bucket + 1] := v_from + v_read.counts[i] - 1;
        v_from := v_from + v_read.counts[i];
        v_span := spans[5 * v_bucket - 1];
        while v_span > 0 loop
            spans[v_span + 4] := spans[v_span + 4] + (
                select coalesce(sum(u.amount), 0)
                  from _limit_ends(array[v_bucket], spans, gives, p_used, p_shapes.use_from, p_shapes.use_to, p_shapes.buckets,
                                   p_shapes.needs, p_shapes.mores, p_limits_s, spans[v_span + 1]) as e
                 cross join lateral unnest(e.amounts) as u (amount));
            v_span := spans[v_span];
        end loop;
    end loop;
end;
$$;

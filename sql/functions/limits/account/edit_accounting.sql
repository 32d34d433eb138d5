-- odc.edit_accounting: change the settings of priority and accounting, by an operator.
-- Arguments  p_ask  any of weights {factor: weight}, max_age_s, half_life_s, enforce, cpus_per_gpu
-- Returns    as show_accounting
-- Locks      the turn
-- Raises     OD010 BadRequest: no such factor, or a value out of range; OD013 NotOwner
create or replace function odc.edit_accounting(p_actor jsonb, p_ask jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_old     jsonb;
    v_unknown text;
begin
    perform _check_operator(p_actor, 'change priorities and accounting');
    perform _take_turn(p_now);
    v_old := show_accounting();
    select string_agg(format('"%s"', w.key), ', ' order by w.key) into v_unknown
      from jsonb_each(coalesce(p_ask -> 'weights', '{}')) as w
     where not exists (select from priority_weight as p where p.factor = w.key);
    if v_unknown is not null then
        raise exception using errcode = 'OD010',
            message = format('priority factor %s does not exist', v_unknown),
            hint = format('Factors: %s.', (select string_agg(key, ', ') from jsonb_object_keys(v_old -> 'weights') as key));
    end if;
    update priority_weight as p set weight = (w.value #>> '{}')::integer
      from jsonb_each(coalesce(p_ask -> 'weights', '{}')) as w where w.key = p.factor;
    update priority_setting
       set max_age_s = coalesce((p_ask ->> 'max_age_s')::integer, max_age_s),
           half_life_s = coalesce((p_ask ->> 'half_life_s')::integer, half_life_s);
    update account_setting
       set enforce = coalesce((p_ask ->> 'enforce')::boolean, enforce),
           cpus_per_gpu = coalesce((p_ask ->> 'cpus_per_gpu')::integer, cpus_per_gpu);
    insert into event (at, kind, actor, detail)
    values (p_now, 'accounting_edited', p_actor ->> 'user', jsonb_build_object('old', _of_keys(v_old, p_ask), 'new', p_ask));
    perform _wake();
    return show_accounting();
exception
    when check_violation or numeric_value_out_of_range or invalid_text_representation then
        raise exception using errcode = 'OD010',
            message = format('a value of %s is out of range', p_ask),
            hint = 'Weights are whole numbers from 0 to 1000000; times are above 0; CPUs per GPU 1 to 100000.';
end;
$$;

-- odc._find_cron_user: the uid whose recurring jobs a request is about.
-- Arguments  p_user  null: the caller. Others are for operators
-- Returns    null: an operator named a user without recurring jobs
-- Raises     OD013 NotOwner
create or replace function odc._find_cron_user(p_actor jsonb, p_user text)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_user is null or p_user = p_actor ->> 'user' then
        return (p_actor ->> 'uid')::integer;
    end if;
    perform _check_operator(p_actor, 'see or remove recurring jobs of other users');
    return (select min(uid) from cron_table where user_name = p_user);
end;
$$;

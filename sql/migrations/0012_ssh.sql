-- The way into dev servers by SSH: whose keys, and who else may enter.

-- What a user has told odc of themselves.
create table user_setting (
    uid         integer primary key,
    user_name   text not null,
    github_user text,                       -- whose public keys enter this user's dev servers
    changed_at  timestamptz not null
);

-- GitHub users whose keys may enter beside the owner's. The keys themselves are ask -> 'ssh_keys', a line each.
alter table reservation add column secondary_users text[] not null default '{}';

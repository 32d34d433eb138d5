-- Logins: who came by an identity that others vouch for (AWS), which uid the name has here, and keys as sessions.

alter table api_key
    add column prefix       text,                          -- its first 8 characters after odc_, to tell keys apart
    add column last_used_at timestamptz,                   -- to the minute
    add column active       boolean not null default true, -- false: logged out, or rotated
    add column until_at     timestamptz;                   -- rotation reaches no further; null: than expires_at

-- One row per name that has ever logged in. A name keeps its uid.
create table login_user (
    user_name   text primary key,
    uid         integer not null unique,
    github_user text,                                      -- as checked at the last login, if the server checks it
    made_at     timestamptz not null,
    login_at    timestamptz not null
);
create unique index login_user_github on login_user (lower(github_user));

-- Signatures of logins that may not come again, kept until they have expired.
create table login_signature (
    digest     text primary key,                           -- SHA-256 of the signature
    expires_at timestamptz not null
);

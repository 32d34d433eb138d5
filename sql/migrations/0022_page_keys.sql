-- What the page makes of an API key, tickets and sessions, ends with that key.
-- Those that are there do not say of which key they are: who is on the page comes in anew.
delete from api_key where digest like 'page-%';

alter table api_key
    add column kind   text not null default 'key' check (kind in ('key', 'ticket', 'session')),
    add column origin text;                                -- digest of the first key it comes from; null: none, or itself
create index api_key_origin on api_key (origin) where origin is not null;

-- What version 1 of the schema has. It is made in one transaction, with the schema as
-- search_path. Hashes and ids are compared byte by byte (collate "C"), as files are.

create table format (
  one     boolean primary key default true check (one),
  version int  not null,  -- of the schema
  oldest  int  not null,  -- program that may work on it, by the version that it knows
  hash    text not null   -- the hash function
);

-- A node, or the tombstone in its place. Neither ever changes.
create table nodes (
  hash      text collate "C" primary key,
  type      text collate "C" not null,
  payload   bytea,             -- canonical CBOR
  stored    bigint not null,   -- ms
  tombstone bytea,
  check ((payload is null) <> (tombstone is null))
);

-- Where a thread stands, and who works on it. The lease is in the same row, so that a
-- swap sees both or neither change.
create table heads (
  thread       text collate "C" primary key,
  head         text collate "C" not null,
  workflow     text collate "C",  -- these four of one that has ended
  status       text,
  completed_at bigint,
  ended        bigint,            -- the order in which threads end
  holder       text,              -- these of one that was ever leased
  fence        bigint not null default 0,
  until        timestamptz,
  taken        uuid,              -- the change that has taken the lease
  check ((ended is null) = (status is null))
) with (fillfactor = 80);
create index heads_ended on heads (ended) where ended is not null;
create sequence endings owned by heads.ended;

create table facts (
  thread text collate "C" primary key,
  facts  jsonb not null,
  changed uuid
);

create table registry (
  name     text collate "C" primary key,
  workflow text collate "C" not null
);

-- The objects of files, as git has them.
create table objects (
  id      text collate "C" primary key,
  kind    "char" not null,
  content bytea not null
);

-- The changes of the last hour, so that one whose answer was lost is not made twice.
create table done (
  change uuid primary key,
  at     timestamptz not null default clock_timestamp()
);

-- What version 2 adds: upkeep while the database is in use.

alter table format add column swept bigint not null default 0;  -- counts the removals of nodes

-- When it was last put. What is young stays.
alter table nodes add column put timestamptz not null default now();
alter table nodes alter column put set default clock_timestamp();
create index nodes_put on nodes using brin (put) with (autosummarize = on);
alter table objects add column put timestamptz not null default now();
alter table objects alter column put set default clock_timestamp();
create index objects_put on objects using brin (put) with (autosummarize = on);

-- Removed threads, which are not accepted again.
create table gone (
  thread text collate "C" primary key,
  at     timestamptz not null default clock_timestamp()
);

-- Redacted nodes, in order, for the homes that have them. An object that was redacted has the kind 'r'.
create table redactions (
  seq    bigint generated always as identity primary key,
  thread text collate "C" not null,
  hash   text collate "C" not null
);

create table seals (
  hash text collate "C" primary key,
  seal bytea not null
);

-- Damaged rows that fsck has removed.
create table quarantine (
  hash      text collate "C" not null,
  type      text,
  payload   bytea,
  stored    bigint,
  tombstone bytea,
  seal      bytea,
  at        timestamptz not null default clock_timestamp()
);

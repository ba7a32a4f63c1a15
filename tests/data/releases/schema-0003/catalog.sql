--
-- PostgreSQL database dump
--


-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: lake; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA lake;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: commit; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.commit (
    id uuid NOT NULL,
    table_id bigint NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    base_snapshot_id bigint NOT NULL,
    base_schema_id integer NOT NULL,
    schema_id integer NOT NULL,
    reads_whole_table boolean NOT NULL,
    reads_where jsonb,
    application text,
    version bigint,
    attempt integer DEFAULT 1 NOT NULL,
    summary jsonb DEFAULT '{}'::jsonb NOT NULL,
    properties jsonb DEFAULT '{}'::jsonb NOT NULL,
    staged_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    decided_at timestamp with time zone,
    reason text,
    snapshot_id bigint,
    approved_by text,
    approval_reason text,
    CONSTRAINT commit_check CHECK (((application IS NULL) = (version IS NULL))),
    CONSTRAINT commit_check1 CHECK (((state = 'published'::text) = (snapshot_id IS NOT NULL))),
    CONSTRAINT commit_check2 CHECK (((state = 'staged'::text) = (decided_at IS NULL))),
    CONSTRAINT commit_check3 CHECK (((approved_by IS NULL) = (approval_reason IS NULL))),
    CONSTRAINT commit_state_check CHECK ((state = ANY (ARRAY['staged'::text, 'published'::text, 'rejected'::text, 'expired'::text])))
);


--
-- Name: commit_read; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.commit_read (
    commit_id uuid NOT NULL,
    partition_id bigint NOT NULL
);


--
-- Name: commit_removal; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.commit_removal (
    commit_id uuid NOT NULL,
    file_id bigint NOT NULL
);


--
-- Name: data_file; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.data_file (
    id bigint NOT NULL,
    table_id bigint NOT NULL,
    commit_id uuid NOT NULL,
    partition_id bigint NOT NULL,
    path text NOT NULL,
    depth integer NOT NULL,
    prefix bigint NOT NULL,
    run integer NOT NULL,
    level integer NOT NULL,
    row_count bigint NOT NULL,
    delete_count bigint NOT NULL,
    size_bytes bigint NOT NULL,
    schema_id integer NOT NULL,
    lower_bounds bytea[] NOT NULL,
    upper_bounds bytea[] NOT NULL,
    null_counts bigint[] NOT NULL,
    sequence bigint,
    added_snapshot bigint,
    removed_snapshot bigint,
    CONSTRAINT data_file_check CHECK (((prefix >= 0) AND (prefix < ((1)::bigint << depth)))),
    CONSTRAINT data_file_check1 CHECK (((delete_count >= 0) AND (delete_count <= row_count))),
    CONSTRAINT data_file_check2 CHECK ((removed_snapshot > added_snapshot)),
    CONSTRAINT data_file_depth_check CHECK (((depth >= 0) AND (depth <= 16))),
    CONSTRAINT data_file_row_count_check CHECK ((row_count > 0))
);


--
-- Name: data_file_id_seq; Type: SEQUENCE; Schema: lake; Owner: -
--

ALTER TABLE lake.data_file ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lake.data_file_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: deletion_queue; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.deletion_queue (
    id bigint NOT NULL,
    table_id bigint NOT NULL,
    path text NOT NULL,
    size_bytes bigint NOT NULL,
    not_before timestamp with time zone NOT NULL
);


--
-- Name: deletion_queue_id_seq; Type: SEQUENCE; Schema: lake; Owner: -
--

ALTER TABLE lake.deletion_queue ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lake.deletion_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: done_partition; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.done_partition (
    table_id bigint NOT NULL,
    partition_id bigint NOT NULL,
    snapshot_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    modified_at timestamp with time zone NOT NULL,
    success_file boolean NOT NULL,
    reset_at timestamp with time zone
);


--
-- Name: lease; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.lease (
    id uuid NOT NULL,
    table_id bigint NOT NULL,
    snapshot_id bigint NOT NULL,
    holder text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);


--
-- Name: migration; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: namespace; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.namespace (
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: partition; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.partition (
    id bigint NOT NULL,
    table_id bigint NOT NULL,
    key bytea[] NOT NULL,
    path text NOT NULL
);


--
-- Name: partition_id_seq; Type: SEQUENCE; Schema: lake; Owner: -
--

ALTER TABLE lake.partition ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lake.partition_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: snapshot; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.snapshot (
    table_id bigint NOT NULL,
    id bigint NOT NULL,
    commit_id uuid NOT NULL,
    kind text NOT NULL,
    schema_id integer NOT NULL,
    committed_at timestamp with time zone NOT NULL,
    summary jsonb NOT NULL,
    properties jsonb NOT NULL,
    expired_at timestamp with time zone,
    CONSTRAINT snapshot_id_check CHECK ((id > 0))
);


--
-- Name: table; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake."table" (
    id bigint NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    location text NOT NULL,
    schema_id integer NOT NULL,
    last_schema_id integer NOT NULL,
    last_column_id integer NOT NULL,
    primary_key integer[] NOT NULL,
    partition_by integer[] NOT NULL,
    sequence_by integer[] NOT NULL,
    bucket_mode text NOT NULL,
    bucket_depth integer,
    merge text NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    head_id bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    dropped_at timestamp with time zone,
    orphans_before timestamp with time zone,
    CONSTRAINT table_bucket_depth_check CHECK (((bucket_depth >= 0) AND (bucket_depth <= 16))),
    CONSTRAINT table_bucket_mode_check CHECK ((bucket_mode = ANY (ARRAY['fixed'::text, 'dynamic'::text, 'postpone'::text, 'none'::text]))),
    CONSTRAINT table_check CHECK (((bucket_mode = 'fixed'::text) = (bucket_depth IS NOT NULL))),
    CONSTRAINT table_check1 CHECK (((bucket_mode = 'none'::text) = (cardinality(primary_key) = 0)))
)
WITH (fillfactor='50');


--
-- Name: table_id_seq; Type: SEQUENCE; Schema: lake; Owner: -
--

ALTER TABLE lake."table" ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lake.table_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: table_schema; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.table_schema (
    table_id bigint NOT NULL,
    id integer CONSTRAINT table_schema_id_not_null1 NOT NULL,
    columns jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: tag; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.tag (
    table_id bigint NOT NULL,
    name text NOT NULL,
    snapshot_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: verdict; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.verdict (
    id bigint NOT NULL,
    commit_id uuid NOT NULL,
    gate text NOT NULL,
    outcome text NOT NULL,
    base_snapshot_id bigint NOT NULL,
    evidence jsonb DEFAULT '{}'::jsonb NOT NULL,
    judged_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    suite_hash text NOT NULL,
    engine text NOT NULL,
    seconds double precision NOT NULL,
    judges_partitions boolean NOT NULL,
    judges_table boolean NOT NULL,
    CONSTRAINT verdict_outcome_check CHECK ((outcome = ANY (ARRAY['accept'::text, 'warn'::text, 'reject'::text, 'errored'::text])))
);


--
-- Name: verdict_id_seq; Type: SEQUENCE; Schema: lake; Owner: -
--

ALTER TABLE lake.verdict ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lake.verdict_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: writer_progress; Type: TABLE; Schema: lake; Owner: -
--

CREATE TABLE lake.writer_progress (
    table_id bigint NOT NULL,
    application text NOT NULL,
    version bigint NOT NULL,
    snapshot_id bigint NOT NULL
);


--
-- Data for Name: commit; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.commit VALUES ('5429d90a-4bf6-4be6-bdd2-159da88ce1ee', 1, 'upsert', 'published', 0, 1, 1, false, NULL, 'loader', 1, 1, '{"rows_in": 19, "partitions": 3, "bytes_added": 6662, "files_added": 3, "rows_written": 19, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.598816+00', '2026-11-19 05:26:24.618609+00', NULL, 1, NULL, NULL);
INSERT INTO lake.commit VALUES ('d992f6d5-4ff5-49d4-8c26-05b888aff94b', 1, 'upsert', 'published', 1, 1, 1, false, NULL, 'loader', 2, 1, '{"rows_in": 9, "partitions": 3, "bytes_added": 6573, "files_added": 3, "rows_written": 9, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.660092+00', '2026-11-19 05:26:24.668043+00', NULL, 2, NULL, NULL);
INSERT INTO lake.commit VALUES ('c04263e7-f6b5-4829-a29c-a966cfbcff9c', 1, 'upsert', 'published', 2, 1, 1, false, NULL, 'loader', 3, 1, '{"rows_in": 6, "partitions": 1, "bytes_added": 2219, "files_added": 1, "rows_written": 6, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.690736+00', '2026-11-19 05:26:24.712506+00', NULL, 3, NULL, NULL);
INSERT INTO lake.commit VALUES ('946ea4cd-c2f1-4f73-9022-7e87a23cb581', 1, 'upsert', 'published', 3, 1, 1, false, NULL, 'loader', 4, 1, '{"rows_in": 4, "partitions": 3, "bytes_added": 6098, "files_added": 3, "rows_written": 4, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.744011+00', '2026-11-19 05:26:24.753871+00', NULL, 4, NULL, NULL);
INSERT INTO lake.commit VALUES ('6bbfc72b-bc74-4138-910b-a61f93b5cedc', 1, 'delete', 'published', 4, 1, 1, true, NULL, NULL, NULL, 1, '{"rows_in": 4, "partitions": 3, "bytes_added": 6641, "files_added": 3, "rows_written": 0, "files_removed": 0, "deletes_written": 4}', '{}', '2026-11-19 05:26:24.829861+00', '2026-11-19 05:26:24.84339+00', NULL, 5, NULL, NULL);
INSERT INTO lake.commit VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 1, 'compact', 'published', 5, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 42, "partitions": 3, "bytes_added": 7693, "files_added": 3, "rows_written": 15, "bytes_removed": 28193, "files_removed": 13, "deletes_written": 4}', '{}', '2026-11-19 05:26:24.902488+00', '2026-11-19 05:26:24.918288+00', NULL, 6, NULL, NULL);
INSERT INTO lake.commit VALUES ('78499ee9-2abb-41d7-b55d-841c09968ece', 1, 'evolve', 'published', 6, 1, 2, false, NULL, NULL, NULL, 1, '{"rows_in": 0, "partitions": 0, "bytes_added": 0, "files_added": 0, "rows_written": 0, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.948474+00', '2026-11-19 05:26:24.959267+00', NULL, 7, NULL, NULL);
INSERT INTO lake.commit VALUES ('8365ad8e-4879-4b25-aad3-3b6ff00b805a', 1, 'upsert', 'published', 7, 2, 2, false, NULL, NULL, NULL, 1, '{"rows_in": 2, "partitions": 2, "bytes_added": 4534, "files_added": 2, "rows_written": 2, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.976543+00', '2026-11-19 05:26:24.98918+00', NULL, 8, NULL, NULL);
INSERT INTO lake.commit VALUES ('558709f8-7756-4b10-a2fd-fcd690eb72f6', 1, 'upsert', 'staged', 8, 2, 2, false, NULL, 'loader', 9, 1, '{"rows_in": 2, "partitions": 2, "bytes_added": 4534, "files_added": 2, "rows_written": 2, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.011367+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('f5b5eb1e-f007-41f5-ac38-692fd7299b4b', 1, 'delete', 'staged', 8, 2, 2, true, NULL, NULL, NULL, 1, '{"rows_in": 6, "partitions": 3, "bytes_added": 7740, "files_added": 3, "rows_written": 0, "files_removed": 0, "deletes_written": 6}', '{}', '2026-11-19 05:26:25.057104+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('e19e793b-3db1-49f1-b20b-eac0c7c8292d', 1, 'upsert', 'staged', 8, 2, 2, false, NULL, 'loader', 11, 2, '{"rows_in": 1, "partitions": 1, "bytes_added": 2259, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.097759+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('1def77f1-8073-40e4-8da7-28c6bae31f77', 1, 'upsert', 'expired', 8, 2, 2, false, NULL, 'loader', 11, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 2276, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.079317+00', '2026-11-19 05:26:25.098865+00', 'a newer attempt took over', NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('8273feb0-4636-4178-8a2f-45552bfe984c', 1, 'upsert', 'rejected', 8, 2, 2, false, NULL, 'loader', 10, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 2273, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.065423+00', '2026-11-19 05:26:25.103663+00', 'looks odd', NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('44d56906-d5d5-4547-b8d0-d6c253c47a14', 2, 'append', 'published', 0, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 4, "partitions": 4, "bytes_added": 4192, "files_added": 4, "rows_written": 4, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.15334+00', '2026-11-19 05:26:25.160427+00', NULL, 1, NULL, NULL);
INSERT INTO lake.commit VALUES ('a194f1d7-7df2-43d9-a1d4-64d2138f1cdb', 2, 'overwrite', 'published', 1, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 1052, "files_added": 1, "rows_written": 1, "files_removed": 1, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.176994+00', '2026-11-19 05:26:25.189515+00', NULL, 2, NULL, NULL);
INSERT INTO lake.commit VALUES ('7705d9f8-1e9f-4ffa-bec3-79e4bf709766', 3, 'append', 'published', 0, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 760, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.213902+00', '2026-11-19 05:26:25.228519+00', NULL, 1, NULL, NULL);
INSERT INTO lake.commit VALUES ('218d342b-6d12-4b20-bc73-34ae61aa69c9', 2, 'overwrite', 'staged', 2, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 1047, "files_added": 1, "rows_written": 1, "files_removed": 1, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.246448+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('74d6fe03-388c-493f-bda2-8bf596b59755', 4, 'upsert', 'staged', 0, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 749, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.286741+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO lake.commit VALUES ('2ae8f166-95bd-4647-a86c-c89060907ff3', 4, 'upsert', 'staged', 0, 1, 1, false, NULL, NULL, NULL, 1, '{"rows_in": 1, "partitions": 1, "bytes_added": 749, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:25.308368+00', NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: commit_read; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.commit_read VALUES ('a194f1d7-7df2-43d9-a1d4-64d2138f1cdb', 7);
INSERT INTO lake.commit_read VALUES ('218d342b-6d12-4b20-bc73-34ae61aa69c9', 6);


--
-- Data for Name: commit_removal; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 3);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 6);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 7);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 10);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 12);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 1);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 5);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 8);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 11);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 2);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 4);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 9);
INSERT INTO lake.commit_removal VALUES ('8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 13);
INSERT INTO lake.commit_removal VALUES ('a194f1d7-7df2-43d9-a1d4-64d2138f1cdb', 27);
INSERT INTO lake.commit_removal VALUES ('218d342b-6d12-4b20-bc73-34ae61aa69c9', 29);


--
-- Data for Name: data_file; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (3, 1, '5429d90a-4bf6-4be6-bdd2-159da88ce1ee', 1, 'day=mon/upsert-01a1f24536299a1316c6bcc05b07a65a-00002.parquet', 0, 0, 0, 0, 6, 0, 2219, 1, '{"\\x8000000000000003","\\x6d6f6e","\\x80000000000000000000000000007531","\\x8000000000000001","\\x"}', '{"\\x8000000000000012","\\x6d6f6e","\\x8000000000000000000000000002bf21","\\x8000000000000001","\\x"}', '{0,0,0,0,5}', 1, 1, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (6, 1, 'd992f6d5-4ff5-49d4-8c26-05b888aff94b', 1, 'day=mon/upsert-01a1f24536742cd3c13ad3d22879842b-00002.parquet', 0, 0, 0, 0, 3, 0, 2185, 1, '{"\\x8000000000000006","\\x6d6f6e","\\x8000000000000000000000000000ea62","\\x8000000000000002",NULL}', '{"\\x8000000000000012","\\x6d6f6e","\\x8000000000000000000000000002bf22","\\x8000000000000002",NULL}', '{0,0,0,0,3}', 2, 2, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (7, 1, 'c04263e7-f6b5-4829-a29c-a966cfbcff9c', 1, 'day=mon/upsert-01a1f24536a7b5cd5738c60524e7ea61-00000.parquet', 0, 0, 0, 0, 6, 0, 2219, 1, '{"\\x8000000000000003","\\x6d6f6e","\\x80000000000000000000000000007533","\\x8000000000000003","\\x"}', '{"\\x8000000000000012","\\x6d6f6e","\\x8000000000000000000000000002bf23","\\x8000000000000003","\\x"}', '{0,0,0,0,5}', 3, 3, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (1, 1, '5429d90a-4bf6-4be6-bdd2-159da88ce1ee', 2, 'day=tue/upsert-01a1f24536299a1316c6bcc05b07a65a-00000.parquet', 0, 0, 0, 0, 7, 0, 2224, 1, '{"\\x8000000000000001","\\x747565","\\x80000000000000000000000000002711","\\x8000000000000001","\\x"}', '{"\\x8000000000000013","\\x747565","\\x8000000000000000000000000002e631","\\x8000000000000001","\\x"}', '{0,0,0,0,6}', 1, 1, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (5, 1, 'd992f6d5-4ff5-49d4-8c26-05b888aff94b', 2, 'day=tue/upsert-01a1f24536742cd3c13ad3d22879842b-00001.parquet', 0, 0, 0, 0, 3, 0, 2204, 1, '{"\\x8000000000000004","\\x747565","\\x80000000000000000000000000009c42","\\x8000000000000002","\\x"}', '{"\\x8000000000000010","\\x747565","\\x80000000000000000000000000027102","\\x8000000000000002","\\x"}', '{0,0,0,0,2}', 2, 2, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (8, 1, '946ea4cd-c2f1-4f73-9022-7e87a23cb581', 2, 'day=tue/upsert-01a1f24536cf710aa1d80ce9a835ca40-00000.parquet', 0, 0, 0, 0, 2, 0, 2104, 1, '{"\\x8000000000000004","\\x747565","\\x80000000000000000000000000009c44","\\x8000000000000004",NULL}', '{"\\x8000000000000010","\\x747565","\\x80000000000000000000000000027104","\\x8000000000000004",NULL}', '{0,0,0,0,2}', 4, 4, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (2, 1, '5429d90a-4bf6-4be6-bdd2-159da88ce1ee', 3, 'day=wed/upsert-01a1f24536299a1316c6bcc05b07a65a-00001.parquet', 0, 0, 0, 0, 6, 0, 2219, 1, '{"\\x8000000000000002","\\x776564","\\x80000000000000000000000000004e21","\\x8000000000000001","\\x"}', '{"\\x8000000000000011","\\x776564","\\x80000000000000000000000000029811","\\x8000000000000001","\\x"}', '{0,0,0,0,5}', 1, 1, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (4, 1, 'd992f6d5-4ff5-49d4-8c26-05b888aff94b', 3, 'day=wed/upsert-01a1f24536742cd3c13ad3d22879842b-00000.parquet', 0, 0, 0, 0, 3, 0, 2184, 1, '{"\\x8000000000000002","\\x776564","\\x80000000000000000000000000004e22","\\x8000000000000002",NULL}', '{"\\x800000000000000e","\\x776564","\\x800000000000000000000000000222e2","\\x8000000000000002",NULL}', '{0,0,0,0,3}', 2, 2, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (9, 1, '946ea4cd-c2f1-4f73-9022-7e87a23cb581', 3, 'day=wed/upsert-01a1f24536cf710aa1d80ce9a835ca40-00001.parquet', 0, 0, 0, 0, 1, 0, 1997, 1, '{"\\x8000000000000008","\\x776564","\\x80000000000000000000000000013884","\\x8000000000000004",NULL}', '{"\\x8000000000000008","\\x776564","\\x80000000000000000000000000013884","\\x8000000000000004",NULL}', '{0,0,0,0,1}', 4, 4, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (28, 2, '44d56906-d5d5-4547-b8d0-d6c253c47a14', 9, 'kind=__HIVE_DEFAULT_PARTITION__/append-01a1f2453860b00568a5c3872eac7d41-00001.parquet', 0, 0, 0, 0, 1, 0, 1030, 1, '{NULL,"\\x8000000000000002"}', '{NULL,"\\x8000000000000002"}', '{1,0}', 1, 1, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (29, 2, '44d56906-d5d5-4547-b8d0-d6c253c47a14', 6, 'kind=/append-01a1f2453860b00568a5c3872eac7d41-00002.parquet', 0, 0, 0, 0, 1, 0, 1047, 1, '{"\\x","\\x8000000000000003"}', '{"\\x","\\x8000000000000003"}', '{0,0}', 1, 1, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (30, 2, '44d56906-d5d5-4547-b8d0-d6c253c47a14', 8, 'kind=a%2Fb/append-01a1f2453860b00568a5c3872eac7d41-00003.parquet', 0, 0, 0, 0, 1, 0, 1063, 1, '{"\\x612f62","\\x8000000000000004"}', '{"\\x612f62","\\x8000000000000004"}', '{0,0}', 1, 1, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (27, 2, '44d56906-d5d5-4547-b8d0-d6c253c47a14', 7, 'kind=a/append-01a1f2453860b00568a5c3872eac7d41-00000.parquet', 0, 0, 0, 0, 1, 0, 1052, 1, '{"\\x61","\\x8000000000000001"}', '{"\\x61","\\x8000000000000001"}', '{0,0}', 1, 1, 2);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (31, 2, 'a194f1d7-7df2-43d9-a1d4-64d2138f1cdb', 7, 'kind=a/overwrite-01a1f245388dc258f5838a205eaf8012-00000.parquet', 0, 0, 0, 0, 1, 0, 1052, 1, '{"\\x61","\\x8000000000000007"}', '{"\\x61","\\x8000000000000007"}', '{0,0}', 2, 2, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (10, 1, '946ea4cd-c2f1-4f73-9022-7e87a23cb581', 1, 'day=mon/upsert-01a1f24536cf710aa1d80ce9a835ca40-00002.parquet', 0, 0, 0, 0, 1, 0, 1997, 1, '{"\\x800000000000000c","\\x6d6f6e","\\x8000000000000000000000000001d4c4","\\x8000000000000004",NULL}', '{"\\x800000000000000c","\\x6d6f6e","\\x8000000000000000000000000001d4c4","\\x8000000000000004",NULL}', '{0,0,0,0,1}', 4, 4, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (12, 1, '6bbfc72b-bc74-4138-910b-a61f93b5cedc', 1, 'day=mon/delete-01a1f245370ad08448bd4fb4210aea08-00001.parquet', 0, 0, 0, 0, 2, 2, 2313, 1, '{"\\x8000000000000006","\\x6d6f6e",NULL,"\\x8000000000000003",NULL}', '{"\\x8000000000000012","\\x6d6f6e",NULL,"\\x8000000000000003",NULL}', '{0,0,2,0,2}', 5, 5, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (11, 1, '6bbfc72b-bc74-4138-910b-a61f93b5cedc', 2, 'day=tue/delete-01a1f245370ad08448bd4fb4210aea08-00000.parquet', 0, 0, 0, 0, 1, 1, 2164, 1, '{"\\x8000000000000013","\\x747565",NULL,"\\x8000000000000001",NULL}', '{"\\x8000000000000013","\\x747565",NULL,"\\x8000000000000001",NULL}', '{0,0,1,0,1}', 5, 5, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (13, 1, '6bbfc72b-bc74-4138-910b-a61f93b5cedc', 3, 'day=wed/delete-01a1f245370ad08448bd4fb4210aea08-00002.parquet', 0, 0, 0, 0, 1, 1, 2164, 1, '{"\\x8000000000000011","\\x776564",NULL,"\\x8000000000000001",NULL}', '{"\\x8000000000000011","\\x776564",NULL,"\\x8000000000000001",NULL}', '{0,0,1,0,1}', 5, 5, 6);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (14, 1, '8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 1, 'day=mon/compact-01a1f245376a45332b450eaa21545e42-00000.parquet', 0, 0, 0, 1, 6, 2, 2566, 1, '{"\\x8000000000000003","\\x6d6f6e","\\x80000000000000000000000000007533","\\x8000000000000003","\\x"}', '{"\\x8000000000000012","\\x6d6f6e","\\x800000000000000000000000000249f3","\\x8000000000000004","\\x"}', '{0,0,2,0,5}', 5, 6, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (15, 1, '8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 2, 'day=tue/compact-01a1f245376ccae7b601b2e290451ce3-00000.parquet', 0, 0, 0, 1, 7, 1, 2583, 1, '{"\\x8000000000000001","\\x747565","\\x80000000000000000000000000002711","\\x8000000000000001","\\x"}', '{"\\x8000000000000013","\\x747565","\\x80000000000000000000000000027104","\\x8000000000000004","\\x"}', '{0,0,1,0,6}', 5, 6, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (16, 1, '8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 3, 'day=wed/compact-01a1f245377cc128710fb027b88fd0cc-00000.parquet', 0, 0, 0, 1, 6, 1, 2544, 1, '{"\\x8000000000000002","\\x776564","\\x80000000000000000000000000004e22","\\x8000000000000001","\\x"}', '{"\\x8000000000000011","\\x776564","\\x800000000000000000000000000222e2","\\x8000000000000004","\\x"}', '{0,0,1,0,5}', 5, 6, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (17, 1, '8365ad8e-4879-4b25-aad3-3b6ff00b805a', 3, 'day=wed/upsert-01a1f24537c3ecc8df135d066f536b12-00000.parquet', 0, 0, 0, 0, 1, 0, 2259, 2, '{"\\x8000000000000002","\\x776564","\\x80000000000000000000000000004e29","\\x8000000000000009",NULL,NULL}', '{"\\x8000000000000002","\\x776564","\\x80000000000000000000000000004e29","\\x8000000000000009",NULL,NULL}', '{0,0,0,0,1,1}', 8, 8, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (18, 1, '8365ad8e-4879-4b25-aad3-3b6ff00b805a', 2, 'day=tue/upsert-01a1f24537c3ecc8df135d066f536b12-00001.parquet', 0, 0, 0, 0, 1, 0, 2275, 2, '{"\\x8000000000000028","\\x747565","\\x80000000000000000000000000061a89","\\x8000000000000009","\\x",NULL}', '{"\\x8000000000000028","\\x747565","\\x80000000000000000000000000061a89","\\x8000000000000009","\\x",NULL}', '{0,0,0,0,0,1}', 8, 8, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (19, 1, '558709f8-7756-4b10-a2fd-fcd690eb72f6', 1, 'day=mon/upsert-01a1f24537e9e8950912427931b39839-00000.parquet', 0, 0, 0, 0, 1, 0, 2259, 2, '{"\\x8000000000000003","\\x6d6f6e","\\x8000000000000000000000000000753a","\\x800000000000000a",NULL,NULL}', '{"\\x8000000000000003","\\x6d6f6e","\\x8000000000000000000000000000753a","\\x800000000000000a",NULL,NULL}', '{0,0,0,0,1,1}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (20, 1, '558709f8-7756-4b10-a2fd-fcd690eb72f6', 3, 'day=wed/upsert-01a1f24537e9e8950912427931b39839-00001.parquet', 0, 0, 0, 0, 1, 0, 2275, 2, '{"\\x8000000000000032","\\x776564","\\x8000000000000000000000000007a12a","\\x800000000000000a","\\x",NULL}', '{"\\x8000000000000032","\\x776564","\\x8000000000000000000000000007a12a","\\x800000000000000a","\\x",NULL}', '{0,0,0,0,0,1}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (21, 1, 'f5b5eb1e-f007-41f5-ac38-692fd7299b4b', 1, 'day=mon/delete-01a1f24537faf237896ea5c211988c87-00000.parquet', 0, 0, 0, 0, 1, 1, 2426, 2, '{"\\x8000000000000003","\\x6d6f6e",NULL,"\\x8000000000000003",NULL,NULL}', '{"\\x8000000000000003","\\x6d6f6e",NULL,"\\x8000000000000003",NULL,NULL}', '{0,0,1,0,1,1}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (22, 1, 'f5b5eb1e-f007-41f5-ac38-692fd7299b4b', 3, 'day=wed/delete-01a1f24537faf237896ea5c211988c87-00001.parquet', 0, 0, 0, 0, 2, 2, 2617, 2, '{"\\x8000000000000002","\\x776564",NULL,"\\x8000000000000001",NULL,NULL}', '{"\\x8000000000000005","\\x776564",NULL,"\\x8000000000000009",NULL,NULL}', '{0,0,2,0,2,2}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (23, 1, 'f5b5eb1e-f007-41f5-ac38-692fd7299b4b', 2, 'day=tue/delete-01a1f24537faf237896ea5c211988c87-00002.parquet', 0, 0, 0, 0, 3, 3, 2697, 2, '{"\\x8000000000000001","\\x747565",NULL,"\\x8000000000000001",NULL,NULL}', '{"\\x8000000000000007","\\x747565",NULL,"\\x8000000000000004",NULL,NULL}', '{0,0,3,0,3,3}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (24, 1, '8273feb0-4636-4178-8a2f-45552bfe984c', 1, 'day=mon/upsert-01a1f24538239ba9ab4d02aec7ebfce6-00000.parquet', 0, 0, 0, 0, 1, 0, 2273, 2, '{"\\x800000000000003c","\\x6d6f6e","\\x800000000000000000000000000927c1","\\x8000000000000001","\\x",NULL}', '{"\\x800000000000003c","\\x6d6f6e","\\x800000000000000000000000000927c1","\\x8000000000000001","\\x",NULL}', '{0,0,0,0,0,1}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (25, 1, '1def77f1-8073-40e4-8da7-28c6bae31f77', 2, 'day=tue/upsert-01a1f245382db3fa57e964d22e04c126-00000.parquet', 0, 0, 0, 0, 1, 0, 2276, 2, '{"\\x8000000000000046","\\x747565","\\x800000000000000000000000000aae61","\\x8000000000000001","\\x",NULL}', '{"\\x8000000000000046","\\x747565","\\x800000000000000000000000000aae61","\\x8000000000000001","\\x",NULL}', '{0,0,0,0,0,1}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (26, 1, 'e19e793b-3db1-49f1-b20b-eac0c7c8292d', 3, 'day=wed/upsert-01a1f245383dbadccbeae8233e49d5ca-00000.parquet', 0, 0, 0, 0, 1, 0, 2259, 2, '{"\\x8000000000000047","\\x776564","\\x800000000000000000000000000ad571","\\x8000000000000001",NULL,NULL}', '{"\\x8000000000000047","\\x776564","\\x800000000000000000000000000ad571","\\x8000000000000001",NULL,NULL}', '{0,0,0,0,1,1}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (32, 3, '7705d9f8-1e9f-4ffa-bec3-79e4bf709766', 10, 'append-01a1f24538b2d312576c3c3007dfa960-00000.parquet', 0, 0, 0, 0, 1, 0, 760, 1, '{"\\x8000000000000001"}', '{"\\x8000000000000001"}', '{0}', 1, 1, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (33, 2, '218d342b-6d12-4b20-bc73-34ae61aa69c9', 6, 'kind=/overwrite-01a1f24538d54f98a9fdacda9d6ee15a-00000.parquet', 0, 0, 0, 0, 1, 0, 1047, 1, '{"\\x","\\x8000000000000008"}', '{"\\x","\\x8000000000000008"}', '{0,0}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (34, 4, '74d6fe03-388c-493f-bda2-8bf596b59755', 11, 'upsert-01a1f24538fd290179d9736d87036874-00000.parquet', 0, 0, 0, 0, 1, 0, 749, 1, '{"\\x8000000000000001"}', '{"\\x8000000000000001"}', '{0}', NULL, NULL, NULL);
INSERT INTO lake.data_file OVERRIDING SYSTEM VALUE VALUES (35, 4, '2ae8f166-95bd-4647-a86c-c89060907ff3', 11, 'upsert-01a1f245390da2370e5a45cd4abed0f1-00000.parquet', 0, 0, 0, 0, 1, 0, 749, 1, '{"\\x8000000000000002"}', '{"\\x8000000000000002"}', '{0}', NULL, NULL, NULL);


--
-- Data for Name: deletion_queue; Type: TABLE DATA; Schema: lake; Owner: -
--



--
-- Data for Name: done_partition; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.done_partition VALUES (1, 1, 5, '2026-11-19 05:26:24.848679+00', '2026-11-19 05:26:24.848679+00', true, NULL);
INSERT INTO lake.done_partition VALUES (1, 2, 5, '2026-11-19 05:26:24.856004+00', '2026-11-19 05:26:24.856004+00', false, '2026-11-19 05:26:24.989892+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: lake; Owner: -
--



--
-- Data for Name: migration; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.migration VALUES (1, 'catalog', '84bc45faf2c8f923e381edbe034f77367452faeeaaca6998859b8872e00f62a3', '2026-11-19 05:26:24.059875+00');
INSERT INTO lake.migration VALUES (2, 'pipeline', '2e389c8c1fd84be921b4c18dc32bccb8dd9aef6930b41f6683eb82bdd9ffe08a', '2026-11-19 05:26:24.060428+00');
INSERT INTO lake.migration VALUES (3, 'orphans', '500f53abc160f4c02cc6fb953ddfd67ac1113ecc42859a80b28333a49bb403e3', '2026-11-19 05:26:24.060564+00');


--
-- Data for Name: namespace; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.namespace VALUES ('shop', '2026-11-19 05:26:24.066438+00');
INSERT INTO lake.namespace VALUES ('empty', '2026-11-19 05:26:24.072754+00');


--
-- Data for Name: partition; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (1, 1, '{"\\x6d6f6e"}', 'day=mon');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (2, 1, '{"\\x747565"}', 'day=tue');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (3, 1, '{"\\x776564"}', 'day=wed');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (6, 2, '{"\\x"}', 'kind=');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (7, 2, '{"\\x61"}', 'kind=a');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (8, 2, '{"\\x612f62"}', 'kind=a%2Fb');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (9, 2, '{NULL}', 'kind=__HIVE_DEFAULT_PARTITION__');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (10, 3, '{}', '');
INSERT INTO lake.partition OVERRIDING SYSTEM VALUE VALUES (11, 4, '{}', '');


--
-- Data for Name: snapshot; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.snapshot VALUES (1, 2, 'd992f6d5-4ff5-49d4-8c26-05b888aff94b', 'upsert', 1, '2026-11-19 05:26:24.668043+00', '{"rows_in": 9, "partitions": 3, "bytes_added": 6573, "files_added": 3, "rows_written": 9, "files_removed": 0, "deletes_written": 0}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (1, 4, '946ea4cd-c2f1-4f73-9022-7e87a23cb581', 'upsert', 1, '2026-11-19 05:26:24.753871+00', '{"rows_in": 4, "partitions": 3, "bytes_added": 6098, "files_added": 3, "rows_written": 4, "files_removed": 0, "deletes_written": 0}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (1, 5, '6bbfc72b-bc74-4138-910b-a61f93b5cedc', 'delete', 1, '2026-11-19 05:26:24.84339+00', '{"rows_in": 4, "partitions": 3, "bytes_added": 6641, "files_added": 3, "rows_written": 0, "files_removed": 0, "deletes_written": 4}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (1, 6, '8498f0b0-7db6-4f45-a4b7-19a4b4cbd468', 'compact', 1, '2026-11-19 05:26:24.918288+00', '{"rows_in": 42, "partitions": 3, "bytes_added": 7693, "files_added": 3, "rows_written": 15, "bytes_removed": 28193, "files_removed": 13, "deletes_written": 4}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (1, 1, '5429d90a-4bf6-4be6-bdd2-159da88ce1ee', 'upsert', 1, '2026-11-19 05:26:24.618609+00', '{"rows_in": 19, "partitions": 3, "bytes_added": 6662, "files_added": 3, "rows_written": 19, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.934197+00');
INSERT INTO lake.snapshot VALUES (1, 3, 'c04263e7-f6b5-4829-a29c-a966cfbcff9c', 'upsert', 1, '2026-11-19 05:26:24.712506+00', '{"rows_in": 6, "partitions": 1, "bytes_added": 2219, "files_added": 1, "rows_written": 6, "files_removed": 0, "deletes_written": 0}', '{}', '2026-11-19 05:26:24.934244+00');
INSERT INTO lake.snapshot VALUES (1, 7, '78499ee9-2abb-41d7-b55d-841c09968ece', 'evolve', 2, '2026-11-19 05:26:24.959267+00', '{"rows_in": 0, "partitions": 0, "bytes_added": 0, "files_added": 0, "rows_written": 0, "files_removed": 0, "deletes_written": 0}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (1, 8, '8365ad8e-4879-4b25-aad3-3b6ff00b805a', 'upsert', 2, '2026-11-19 05:26:24.98918+00', '{"rows_in": 2, "partitions": 2, "bytes_added": 4534, "files_added": 2, "rows_written": 2, "files_removed": 0, "deletes_written": 0}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (2, 1, '44d56906-d5d5-4547-b8d0-d6c253c47a14', 'append', 1, '2026-11-19 05:26:25.160427+00', '{"rows_in": 4, "partitions": 4, "bytes_added": 4192, "files_added": 4, "rows_written": 4, "files_removed": 0, "deletes_written": 0}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (2, 2, 'a194f1d7-7df2-43d9-a1d4-64d2138f1cdb', 'overwrite', 1, '2026-11-19 05:26:25.189515+00', '{"rows_in": 1, "partitions": 1, "bytes_added": 1052, "files_added": 1, "rows_written": 1, "files_removed": 1, "deletes_written": 0}', '{}', NULL);
INSERT INTO lake.snapshot VALUES (3, 1, '7705d9f8-1e9f-4ffa-bec3-79e4bf709766', 'append', 1, '2026-11-19 05:26:25.228519+00', '{"rows_in": 1, "partitions": 1, "bytes_added": 760, "files_added": 1, "rows_written": 1, "files_removed": 0, "deletes_written": 0}', '{}', NULL);


--
-- Data for Name: table; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake."table" OVERRIDING SYSTEM VALUE VALUES (1, 'shop', 'orders', 'file:///released-warehouse/shop/orders-ecd1c03e', 2, 2, 6, '{1}', '{2}', '{4}', 'fixed', 1, 'deduplicate', '{}', 8, '2026-11-19 05:26:24.101174+00', NULL, NULL);
INSERT INTO lake."table" OVERRIDING SYSTEM VALUE VALUES (2, 'shop', 'events', 'file:///released-warehouse/shop/events-b024f18d', 1, 1, 2, '{}', '{1}', '{}', 'none', NULL, 'deduplicate', '{}', 2, '2026-11-19 05:26:25.114065+00', NULL, NULL);
INSERT INTO lake."table" OVERRIDING SYSTEM VALUE VALUES (3, 'shop', 'dropped', 'file:///released-warehouse/shop/dropped-54fea256', 1, 1, 1, '{}', '{}', '{}', 'none', NULL, 'deduplicate', '{}', 1, '2026-11-19 05:26:25.19696+00', '2026-11-19 05:26:25.234165+00', NULL);
INSERT INTO lake."table" OVERRIDING SYSTEM VALUE VALUES (4, 'shop', 'gated', 'file:///released-warehouse/shop/gated-ec1bfa54', 1, 1, 1, '{1}', '{}', '{}', 'postpone', NULL, 'deduplicate', '{"required_gate": "few"}', 0, '2026-11-19 05:26:25.257027+00', NULL, NULL);


--
-- Data for Name: table_schema; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.table_schema VALUES (1, 1, '[{"id": 1, "name": "id", "type": "bigint", "nullable": false}, {"id": 2, "name": "day", "type": "string", "nullable": true}, {"id": 3, "name": "amount", "type": "decimal(10,2)", "nullable": true}, {"id": 4, "name": "version", "type": "int", "nullable": true}, {"id": 5, "name": "note", "type": "string", "nullable": true}]', '2026-11-19 05:26:24.102847+00');
INSERT INTO lake.table_schema VALUES (1, 2, '[{"id": 1, "name": "id", "type": "bigint", "nullable": false}, {"id": 2, "name": "day", "type": "string", "nullable": true}, {"id": 3, "name": "amount", "type": "decimal(10,2)", "nullable": true}, {"id": 4, "name": "version", "type": "int", "nullable": true}, {"id": 5, "name": "remark", "type": "string", "nullable": true}, {"id": 6, "name": "größe", "type": "string", "nullable": true}]', '2026-11-19 05:26:24.947153+00');
INSERT INTO lake.table_schema VALUES (2, 1, '[{"id": 1, "name": "kind", "type": "string", "nullable": true}, {"id": 2, "name": "count", "type": "int", "nullable": true}]', '2026-11-19 05:26:25.114747+00');
INSERT INTO lake.table_schema VALUES (3, 1, '[{"id": 1, "name": "n", "type": "int", "nullable": true}]', '2026-11-19 05:26:25.197254+00');
INSERT INTO lake.table_schema VALUES (4, 1, '[{"id": 1, "name": "id", "type": "int", "nullable": false}]', '2026-11-19 05:26:25.2609+00');


--
-- Data for Name: tag; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.tag VALUES (1, 'first', 2, '2026-11-19 05:26:24.765681+00');
INSERT INTO lake.tag VALUES (1, 'größe 2', 8, '2026-11-19 05:26:24.99798+00');


--
-- Data for Name: verdict; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.verdict OVERRIDING SYSTEM VALUE VALUES (1, '74d6fe03-388c-493f-bda2-8bf596b59755', 'few', 'accept', 0, '{"checks": [{"name": "table_row_count_to_be_between", "scope": "staged", "detail": "", "sample": [], "status": "passed", "observed": 1, "severity": "critical", "arguments": {"max_value": 100}, "row_count": null, "expectation": "expect_table_row_count_to_be_between", "unexpected_count": null}]}', '2026-11-19 05:26:25.311841+00', '53ebb3a16d3202fa', 'arrow', 4.177582692999749, false, false);


--
-- Data for Name: writer_progress; Type: TABLE DATA; Schema: lake; Owner: -
--

INSERT INTO lake.writer_progress VALUES (1, 'loader', 4, 4);


--
-- Name: data_file_id_seq; Type: SEQUENCE SET; Schema: lake; Owner: -
--

SELECT pg_catalog.setval('lake.data_file_id_seq', 35, true);


--
-- Name: deletion_queue_id_seq; Type: SEQUENCE SET; Schema: lake; Owner: -
--

SELECT pg_catalog.setval('lake.deletion_queue_id_seq', 1, false);


--
-- Name: partition_id_seq; Type: SEQUENCE SET; Schema: lake; Owner: -
--

SELECT pg_catalog.setval('lake.partition_id_seq', 11, true);


--
-- Name: table_id_seq; Type: SEQUENCE SET; Schema: lake; Owner: -
--

SELECT pg_catalog.setval('lake.table_id_seq', 4, true);


--
-- Name: verdict_id_seq; Type: SEQUENCE SET; Schema: lake; Owner: -
--

SELECT pg_catalog.setval('lake.verdict_id_seq', 1, true);


--
-- Name: commit commit_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit
    ADD CONSTRAINT commit_pkey PRIMARY KEY (id);


--
-- Name: commit_read commit_read_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit_read
    ADD CONSTRAINT commit_read_pkey PRIMARY KEY (commit_id, partition_id);


--
-- Name: commit_removal commit_removal_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit_removal
    ADD CONSTRAINT commit_removal_pkey PRIMARY KEY (commit_id, file_id);


--
-- Name: data_file data_file_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.data_file
    ADD CONSTRAINT data_file_pkey PRIMARY KEY (id);


--
-- Name: data_file data_file_table_id_path_key; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.data_file
    ADD CONSTRAINT data_file_table_id_path_key UNIQUE (table_id, path);


--
-- Name: deletion_queue deletion_queue_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.deletion_queue
    ADD CONSTRAINT deletion_queue_pkey PRIMARY KEY (id);


--
-- Name: deletion_queue deletion_queue_table_id_path_key; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.deletion_queue
    ADD CONSTRAINT deletion_queue_table_id_path_key UNIQUE (table_id, path);


--
-- Name: done_partition done_partition_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.done_partition
    ADD CONSTRAINT done_partition_pkey PRIMARY KEY (table_id, partition_id);


--
-- Name: lease lease_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (id);


--
-- Name: migration migration_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);


--
-- Name: namespace namespace_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.namespace
    ADD CONSTRAINT namespace_pkey PRIMARY KEY (name);


--
-- Name: partition partition_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.partition
    ADD CONSTRAINT partition_pkey PRIMARY KEY (id);


--
-- Name: partition partition_table_id_key_key; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.partition
    ADD CONSTRAINT partition_table_id_key_key UNIQUE (table_id, key);


--
-- Name: snapshot snapshot_commit_id_key; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.snapshot
    ADD CONSTRAINT snapshot_commit_id_key UNIQUE (commit_id);


--
-- Name: snapshot snapshot_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (table_id, id);


--
-- Name: snapshot snapshot_table_id_committed_at_key; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.snapshot
    ADD CONSTRAINT snapshot_table_id_committed_at_key UNIQUE (table_id, committed_at);


--
-- Name: table table_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake."table"
    ADD CONSTRAINT table_pkey PRIMARY KEY (id);


--
-- Name: table_schema table_schema_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.table_schema
    ADD CONSTRAINT table_schema_pkey PRIMARY KEY (table_id, id);


--
-- Name: tag tag_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.tag
    ADD CONSTRAINT tag_pkey PRIMARY KEY (table_id, name);


--
-- Name: verdict verdict_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.verdict
    ADD CONSTRAINT verdict_pkey PRIMARY KEY (id);


--
-- Name: writer_progress writer_progress_pkey; Type: CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.writer_progress
    ADD CONSTRAINT writer_progress_pkey PRIMARY KEY (table_id, application);


--
-- Name: commit_not_published; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX commit_not_published ON lake.commit USING btree (table_id, state) WHERE (state <> 'published'::text);


--
-- Name: commit_published_once; Type: INDEX; Schema: lake; Owner: -
--

CREATE UNIQUE INDEX commit_published_once ON lake.commit USING btree (table_id, application, version) WHERE (state = 'published'::text);


--
-- Name: commit_removal_file; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX commit_removal_file ON lake.commit_removal USING btree (file_id);


--
-- Name: commit_staged; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX commit_staged ON lake.commit USING btree (table_id, application, version) WHERE (state = 'staged'::text);


--
-- Name: data_file_added; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX data_file_added ON lake.data_file USING btree (table_id, added_snapshot);


--
-- Name: data_file_commit; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX data_file_commit ON lake.data_file USING btree (commit_id);


--
-- Name: data_file_live; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX data_file_live ON lake.data_file USING btree (table_id, partition_id, COALESCE(removed_snapshot, '9223372036854775807'::bigint));


--
-- Name: data_file_partition; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX data_file_partition ON lake.data_file USING btree (partition_id, added_snapshot);


--
-- Name: data_file_removed; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX data_file_removed ON lake.data_file USING btree (table_id, removed_snapshot, id) WHERE (removed_snapshot IS NOT NULL);


--
-- Name: lease_snapshot; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX lease_snapshot ON lake.lease USING btree (table_id, snapshot_id);


--
-- Name: snapshot_kept; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX snapshot_kept ON lake.snapshot USING btree (table_id, id) WHERE (expired_at IS NULL);


--
-- Name: table_name; Type: INDEX; Schema: lake; Owner: -
--

CREATE UNIQUE INDEX table_name ON lake."table" USING btree (namespace, name) WHERE (dropped_at IS NULL);


--
-- Name: verdict_commit; Type: INDEX; Schema: lake; Owner: -
--

CREATE INDEX verdict_commit ON lake.verdict USING btree (commit_id, gate, id);


--
-- Name: commit_read commit_read_commit_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit_read
    ADD CONSTRAINT commit_read_commit_id_fkey FOREIGN KEY (commit_id) REFERENCES lake.commit(id);


--
-- Name: commit_read commit_read_partition_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit_read
    ADD CONSTRAINT commit_read_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES lake.partition(id);


--
-- Name: commit_removal commit_removal_commit_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit_removal
    ADD CONSTRAINT commit_removal_commit_id_fkey FOREIGN KEY (commit_id) REFERENCES lake.commit(id);


--
-- Name: commit_removal commit_removal_file_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit_removal
    ADD CONSTRAINT commit_removal_file_id_fkey FOREIGN KEY (file_id) REFERENCES lake.data_file(id);


--
-- Name: commit commit_table_id_base_schema_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit
    ADD CONSTRAINT commit_table_id_base_schema_id_fkey FOREIGN KEY (table_id, base_schema_id) REFERENCES lake.table_schema(table_id, id);


--
-- Name: commit commit_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit
    ADD CONSTRAINT commit_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: commit commit_table_id_schema_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.commit
    ADD CONSTRAINT commit_table_id_schema_id_fkey FOREIGN KEY (table_id, schema_id) REFERENCES lake.table_schema(table_id, id);


--
-- Name: data_file data_file_commit_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.data_file
    ADD CONSTRAINT data_file_commit_id_fkey FOREIGN KEY (commit_id) REFERENCES lake.commit(id);


--
-- Name: data_file data_file_partition_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.data_file
    ADD CONSTRAINT data_file_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES lake.partition(id);


--
-- Name: deletion_queue deletion_queue_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.deletion_queue
    ADD CONSTRAINT deletion_queue_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: done_partition done_partition_partition_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.done_partition
    ADD CONSTRAINT done_partition_partition_id_fkey FOREIGN KEY (partition_id) REFERENCES lake.partition(id);


--
-- Name: done_partition done_partition_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.done_partition
    ADD CONSTRAINT done_partition_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: lease lease_table_id_snapshot_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.lease
    ADD CONSTRAINT lease_table_id_snapshot_id_fkey FOREIGN KEY (table_id, snapshot_id) REFERENCES lake.snapshot(table_id, id);


--
-- Name: partition partition_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.partition
    ADD CONSTRAINT partition_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: snapshot snapshot_commit_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.snapshot
    ADD CONSTRAINT snapshot_commit_id_fkey FOREIGN KEY (commit_id) REFERENCES lake.commit(id);


--
-- Name: snapshot snapshot_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.snapshot
    ADD CONSTRAINT snapshot_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: snapshot snapshot_table_id_schema_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.snapshot
    ADD CONSTRAINT snapshot_table_id_schema_id_fkey FOREIGN KEY (table_id, schema_id) REFERENCES lake.table_schema(table_id, id);


--
-- Name: table table_id_schema_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake."table"
    ADD CONSTRAINT table_id_schema_id_fkey FOREIGN KEY (id, schema_id) REFERENCES lake.table_schema(table_id, id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: table table_namespace_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake."table"
    ADD CONSTRAINT table_namespace_fkey FOREIGN KEY (namespace) REFERENCES lake.namespace(name);


--
-- Name: table_schema table_schema_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.table_schema
    ADD CONSTRAINT table_schema_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: tag tag_table_id_snapshot_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.tag
    ADD CONSTRAINT tag_table_id_snapshot_id_fkey FOREIGN KEY (table_id, snapshot_id) REFERENCES lake.snapshot(table_id, id);


--
-- Name: verdict verdict_commit_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.verdict
    ADD CONSTRAINT verdict_commit_id_fkey FOREIGN KEY (commit_id) REFERENCES lake.commit(id);


--
-- Name: writer_progress writer_progress_table_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.writer_progress
    ADD CONSTRAINT writer_progress_table_id_fkey FOREIGN KEY (table_id) REFERENCES lake."table"(id);


--
-- Name: writer_progress writer_progress_table_id_snapshot_id_fkey; Type: FK CONSTRAINT; Schema: lake; Owner: -
--

ALTER TABLE ONLY lake.writer_progress
    ADD CONSTRAINT writer_progress_table_id_snapshot_id_fkey FOREIGN KEY (table_id, snapshot_id) REFERENCES lake.snapshot(table_id, id);


--
-- PostgreSQL database dump complete
--



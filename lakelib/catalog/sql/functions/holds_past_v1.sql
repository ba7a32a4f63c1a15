-- Whether publishing a commit compares it with what has come since its base: with rows where it read, with files that it
-- takes out, with rows that a verdict rests on. Only then does it hold the past; one that just adds rows needs none of it.
create or replace function lake.holds_past_v1(own lake.commit) returns boolean
language plpgsql stable as $$
begin
    return own.reads_whole_table or own.rows_from_base or own.reads_where is not null
        or exists (select from lake.commit_read r where r.commit_id = own.id)
        or exists (select from lake.commit_removal r where r.commit_id = own.id)
        or exists (select from lake.verdict v where v.commit_id = own.id and (v.judges_partitions or v.judges_table));
end $$;

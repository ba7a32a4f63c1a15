-- Which snapshot has taken a done mark back: whoever published it may mark the partition again.
alter table lake.done_partition add column reset_snapshot bigint;

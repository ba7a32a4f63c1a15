-- The restored lake reads its original's files: it is bound to no server, and changes nothing until it is adopted.
update lake.identity set system_identifier = 0;

SELECT id FROM days WHERE _op = 'upsert'

SELECT sum(amount) AS amount, count(*) AS days FROM sums

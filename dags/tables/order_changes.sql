-- `_op` says whether the order came or changed, or was deleted; `_commit` is the snapshot of orders that did it.
SELECT order_id, dt, _op AS change, status, amount, _commit AS snapshot FROM orders

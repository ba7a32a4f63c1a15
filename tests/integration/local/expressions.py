"""Expressions and queries in Spark SQL, over the view `source` of the test beside this file."""

SAME = r"""
k; t; h; i; b; d; w; r; x; s; day; ts; tn; f; bin; arr; st; mp; source.k; `d`; (i); 1; 2147483647; 2147483648
9223372036854775807; 1L; 0.5; 0.05; 1.50; 12.0; 'text'; "text"; true; false; ''; -5; -1.5; :partition
DATE(:partition); DATE '2026-01-02'; TIMESTAMP '2026-01-02 03:04:05'; date('2026-01-02'); t + 1; t + h; b + h; t + b
i + 1L; t - h; t * 1; h * 2L; t * CAST(h AS INT); b + 1; b - 1; -t; -h; -b; -d; -x; abs(h); abs(d); d + d; d - d
d * d
d + i; d * 2; d + 1; d - 0.5; d * 0.19; 2 * d; d + w; w - d; b + d; t * d; h - d; d * h; 1 - d; d + NULL; x + 1; x - x
x * 2.5; x + i; x * b; x + d; d * x; b / 3; i / 7; t / 4; x / 3; 7 / 2; 7 div 2; b div 7
b % 1000; -7 div 2; -7 % 3; 7 % -3; h % 7; mod(b, 10); round(d, 1); round(d); round(d, 5); round(w, 2); round(w, 0)
i = 3; i <> 3; i != b; i == t; i < b; i <= 3; i > -1; i >= 2.5; d > 1; d = 1.010; d < w; x > 1; x < 0
s = 'Open'; s < 'P'; s <> ''; s >= s; day = '2026-11-18'; day < :partition; day >= DATE(:partition)
'2026-11-18' = day; ts > '2026-01-01 00:00:00'; ts <= day; ts = ts; f = true; f <> f; bin = bin; i <=> NULL
d <=> d; s <=> 'Open'; i = NULL; NULL = NULL; NULL <=> NULL; b = d; b > 1.5; f AND i > 0
f OR NULL; NOT f; NOT (i = 3 OR f); f AND NULL; f IS TRUE; f IS NOT TRUE; f IS FALSE; i IS NULL; s IS NOT NULL
i BETWEEN 0 AND 10; d BETWEEN -1 AND 1.5; day BETWEEN '2026-01-01' AND :partition; i NOT BETWEEN 0 AND 10
x BETWEEN 0 AND 2; i IN (3, 4); i IN (3, NULL); i NOT IN (3, NULL); s IN ('Open', ''); d IN (1.01, 5)
day IN ('2026-11-18'); b IN (4, 5L); s LIKE 'O%'; s LIKE '%r_n%'; s LIKE '____'; s NOT LIKE '%n'; NOT s LIKE 'O%'
s LIKE ''
startswith(s, 'O'); endswith(s, 'n'); contains(s, 'pe'); CASE WHEN i > 0 THEN 'a' WHEN i < 0 THEN 'b' END
CASE WHEN f THEN i ELSE b END; CASE s WHEN 'Open' THEN 1 ELSE 2 END; CASE WHEN f THEN d ELSE 0 END
CASE WHEN f THEN 1.5 ELSE w END; CASE WHEN f THEN x ELSE 0 END; CASE WHEN f THEN NULL ELSE i END; if(f, 'x', s)
if(i > 0, day, NULL); if(f, day, ts); coalesce(i, 0); coalesce(d, 0); coalesce(s, '?'); coalesce(NULL, b, i)
coalesce(day, DATE '2000-01-01'); nvl(d, 0.5); ifnull(i, t); nullif(i, 3); nullif(s, ''); nullif(d, 0)
coalesce(ts, day); greatest(i, h, t); least(d, 1.5); greatest(s, 'M'); least(day, ts); greatest(i, NULL)
coalesce(x, 1); coalesce(x, d); lower(s); upper(s); trim(s); ltrim(s); rtrim(s); lower(trim(s)); length(s)
char_length(s); substring(s, 2, 2); substr(s, 3); substring(s, 1, 0); s || '!'; concat(s, '-', s); concat(s, i)
concat('a', day); concat(i, f); 'a' || NULL; replace(s, 'n', 'NN'); replace(s, 'pen', ''); length(''); length(NULL)
trim(BOTH FROM s); concat(s); CAST(i AS BIGINT); CAST(t AS INT); CAST(t AS SMALLINT); CAST(i AS DECIMAL(12, 2))
CAST(b AS DECIMAL(20, 0)); CAST(i AS DOUBLE); CAST(b AS DOUBLE); CAST(i AS STRING); CAST(b AS STRING)
CAST(f AS STRING); CAST(f AS INT); CAST(day AS STRING); CAST(d AS DECIMAL(12, 4)); CAST(d AS DECIMAL(10, 1))
CAST(w AS DECIMAL(30, 2)); CAST(d AS INT); CAST(d AS BIGINT); CAST(d AS DOUBLE); CAST(r AS DOUBLE); CAST(1.999 AS INT)
CAST(-1.999 AS INT); CAST(CAST(2.5 AS DOUBLE) AS INT); CAST(whole AS INT); CAST(whole AS TINYINT)
CAST(whole AS BIGINT); CAST(whole AS DECIMAL(10, 2)); CAST(num AS DECIMAL(10, 2)); CAST(num AS DECIMAL(5, 0))
CAST(num AS DECIMAL(20, 10)); CAST(num AS DOUBLE); CAST(flag AS BOOLEAN); CAST(dd AS DATE); CAST(tt AS TIMESTAMP)
CAST(dd AS TIMESTAMP); CAST(dd AS TIMESTAMP_NTZ); CAST(day AS TIMESTAMP); CAST(ts AS DATE); CAST(tn AS DATE)
CAST(ts AS TIMESTAMP_NTZ); CAST(tn AS TIMESTAMP); CAST(NULL AS INT); CAST(NULL AS STRING); CAST(s AS STRING)
i::bigint; int(d); double(i); string(i); date(ts); boolean(flag); year(day); month(day); day(day)
dayofmonth(ts); year(ts); year(dd); hour(ts); minute(ts); second(ts); hour(tn); to_date(dd); to_date(ts)
date_add(DATE '2026-01-31', i - i + 1); date_add('2026-01-31', 1); date_sub(DATE '2026-03-01', 1)
datediff(day, DATE '2000-01-01'); datediff(ts, day); datediff(:partition, '2026-01-01')
EXISTS (SELECT 1 FROM source WHERE i > 5); (SELECT max(i) FROM source); i > (SELECT min(b) FROM source)
"""

AGGREGATED = r"""
count(*); count(1); count(i); count(DISTINCT i); count(DISTINCT s); count(DISTINCT d); count(DISTINCT day); sum(i)
sum(b); sum(t); sum(d); sum(d * 2); min(i); max(b); min(d); max(s); min(day); max(ts); min(tn); max(f); min(s)
sum(h) FILTER (WHERE f); count(*) FILTER (WHERE i > 0); count(x); count(arr); sum(CASE WHEN f THEN 1 ELSE 0 END)
sum(i) + 1; max(d) - min(d); sum(NULL + i); coalesce(sum(i), 0); count(*) = 2; min(bin); sum(-d); round(sum(d), 1)
"""

WINDOWED = r"""
row_number() OVER (PARTITION BY f ORDER BY k); row_number() OVER (ORDER BY i DESC); rank() OVER (ORDER BY f)
count(*) OVER (); dense_rank() OVER (ORDER BY f DESC); sum(i) OVER (PARTITION BY f); sum(d) OVER (ORDER BY k)
max(s) OVER (PARTITION BY f ORDER BY k); row_number() OVER (ORDER BY b, k)
row_number() OVER (ORDER BY s NULLS LAST, k); row_number() OVER (ORDER BY ts DESC NULLS FIRST)
count(i) OVER (ORDER BY f); min(day) OVER (PARTITION BY f, i > 0)
rank() OVER (PARTITION BY f IS NULL ORDER BY d DESC)
"""

QUERIES = """
SELECT k FROM source WHERE i IN (SELECT i FROM source WHERE i > 0)
SELECT k FROM source WHERE i NOT IN (SELECT i FROM source)
SELECT k FROM source WHERE k > 0 AND i NOT IN (SELECT i FROM source WHERE i > 5) AND f IS NOT NULL
SELECT k FROM source WHERE i NOT IN (SELECT i FROM source WHERE k > 100)
SELECT f, count(*) AS n, sum(d) AS d FROM source GROUP BY f
SELECT f AS g, count(*) AS n FROM source GROUP BY g HAVING count(*) > 1
SELECT i % 2 AS odd, max(s) AS s FROM source GROUP BY 1
SELECT lower(trim(s)) AS s, count(*) AS n FROM source GROUP BY lower(trim(s))
SELECT DISTINCT f, i > 0 AS p FROM source
SELECT count(*) AS n FROM source
SELECT sum(i) AS n FROM source WHERE k > 100
SELECT f, sum(i) AS n FROM source WHERE k > 100 GROUP BY f
SELECT a.k, b.s, b.d FROM source a JOIN source b ON a.k = b.k
SELECT a.k, b.s FROM source a LEFT JOIN (SELECT k, s FROM source WHERE f) b ON a.k = b.k AND a.i > 0
SELECT b.k, a.s FROM source a RIGHT JOIN source b ON a.k = b.k + 1
SELECT a.k, b.k AS l FROM source a FULL OUTER JOIN source b ON a.k = b.k + 2
SELECT k, a.s, b.d FROM source a JOIN source b USING (k)
SELECT * FROM (SELECT k, s FROM source) a LEFT JOIN (SELECT k, d FROM source WHERE f) b USING (k)
SELECT a.k FROM source a LEFT SEMI JOIN source b ON a.k = b.k AND b.f
SELECT a.k FROM source a LEFT ANTI JOIN source b ON a.k = b.k AND b.f
SELECT a.k, b.k AS l FROM source a CROSS JOIN source b
SELECT a.k, b.k AS l FROM source a, source b WHERE a.k < b.k
SELECT k, i FROM source UNION ALL SELECT k, b FROM source
SELECT f FROM source UNION SELECT i > 0 FROM source
SELECT d FROM source UNION ALL SELECT 1
SELECT k FROM source EXCEPT SELECT k FROM source WHERE f
SELECT k FROM source INTERSECT SELECT t FROM source
WITH c AS (SELECT k, s FROM source WHERE k < 3), n AS (SELECT count(*) AS n FROM c) SELECT c.*, n.n FROM c CROSS JOIN n
SELECT k, K AS again, S FROM Source WHERE F
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY f ORDER BY k DESC) AS n FROM source) WHERE n = 1
SELECT k FROM source WHERE day = DATE(:partition)
SELECT a.k FROM source a WHERE a.k NOT IN (SELECT k FROM source WHERE f IS TRUE)
SELECT f, count(*) AS n FROM (SELECT f, k FROM source UNION ALL SELECT f, k FROM source) GROUP BY f
"""

IN_ORDER = """
SELECT k, i FROM source ORDER BY i
SELECT k, i FROM source ORDER BY i DESC, k
SELECT k AS i, i AS j FROM source ORDER BY i DESC
SELECT k, s FROM source ORDER BY s NULLS LAST
SELECT f, count(*) AS n FROM source GROUP BY f ORDER BY n, f
SELECT k FROM source WHERE i IS NOT NULL
"""

WRONG = r"""
i + 2147483647; CAST(100 AS TINYINT) + CAST(100 AS TINYINT); b * 9007199254740993
b - 9223372036854775807 - 9007199254740993; h * h; t * CAST(100 AS TINYINT); 1 / 0; i / 0; x / 0; b div 0; i % 0
CAST(b AS INT); CAST(i AS TINYINT); CAST(h AS TINYINT); CAST(d AS DECIMAL(4, 2)); CAST(b AS DECIMAL(10, 0))
CAST(d AS TINYINT); CAST(x AS INT); CAST('2026-02-30' AS DATE); DATE '2026-02-30'; CAST('99999999999' AS INT)
CAST('12345' AS DECIMAL(4, 1)); sum(b - b + 9223372036854775807); (SELECT k FROM source); abs(CAST(-128 AS TINYINT))
-CAST(-128 AS TINYINT)
"""
"""Refused by Spark, too."""

UNLIKE = r"""
CAST('x' AS INT); CAST(' 1' AS INT); CAST('1.5' AS INT); CAST('2026-1-1' AS DATE); CAST('1e3' AS DOUBLE)
CAST('t' AS BOOLEAN); CAST('2026-11-18 10:00' AS TIMESTAMP); CAST('2026-11-18T10:00:00+01:00' AS TIMESTAMP)
CAST('' AS DATE); lower('ΑΣ'); upper('ß'); lower('İ'); upper('ŉ'); day = 'yesterday'; CAST('1_0' AS INT)
CAST('0x1F' AS INT); CAST('NaN' AS DOUBLE); CAST(date_add(DATE '9999-12-31', 1) AS STRING)
"""
"""Values with which the engines differ, or may: they are for Spark."""

REFUSED = r"""
d / 3; avg(i); sum(x); max(x); sum(r); first(s); collect_list(i); count(DISTINCT x); count(DISTINCT i, b); foo(s)
now(); current_date(); rand(); uuid(); s RLIKE 'a'; regexp_replace(s, 'a', 'b'); date_format(day, 'yyyy'); s = 1
i = '1'; s + 1; day + 1; s || x; CAST(x AS STRING); CAST(d AS STRING); CAST(ts AS STRING); CAST(x AS DECIMAL(10, 2))
CAST(r AS INT); try_cast(s AS INT); try_to_date(dd); substring(s, 0, 2); substring(s, -2); substring(s, k); s LIKE s
concat_ws('-', s); arr[0]; st.a; size(arr); mp['a']; 'a\n'; r'a'; 'a' 'b'; 1e3; 1.5F; X'00'; INTERVAL 1 DAY
day + INTERVAL 1 DAY; date_trunc('MONTH', ts); weekofyear(day); hour(dd); unix_timestamp(ts)
reflect('java.lang.System', 'getenv', 'HOME'); w * w; i + x + s; CASE WHEN f THEN s ELSE i END; coalesce(s, i)
sum(i) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW); lag(i) OVER (ORDER BY k)
row_number() OVER (PARTITION BY x ORDER BY k); sum(DISTINCT i); (SELECT k FROM source s WHERE s.k = source.k); unknown
other.k; :other; coalesce(NULL, NULL); i IN (s); s IN (1); round(x, 2); round(d, -1); abs(x); greatest(x, 1)
xxhash64(i); to_date(dd, 'yyyy'); trim('x' FROM s); NULL; arr = arr; tn = ts; i IN (SELECT i FROM source)
i NOT IN (SELECT i FROM source); s ILIKE 'a'
x = x; x = 0; x <=> x; x > d; i > x
x IN (1, 2); rank() OVER (ORDER BY x)
f AND i
"""

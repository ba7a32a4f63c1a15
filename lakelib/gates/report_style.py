"""Pure. How the report of a verdict looks: light and dark, on a screen, a phone and on paper."""

STYLE = """
:root{--page:#f5f6f8;--card:#fff;--ink:#1b2330;--soft:#5b6675;--line:#dfe3e9;--code:#eef1f5;
--passed:#1a7f4b;--failed:#c62f3b;--errored:#8a5a00;--warning:#b26a00;--info:#3568b8;--tone:var(--passed)}
@media (prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--ink:#e6eaf0;--soft:#98a4b3;--line:#2c3541;
--code:#242c37;--passed:#4cc38a;--failed:#ff7b81;--errored:#e3b341;--warning:#f0a84b;--info:#7fb0ff}}
body.warn{--tone:var(--warning)}body.reject{--tone:var(--failed)}body.errored{--tone:var(--errored)}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);border-top:.4rem solid var(--tone);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:60rem;margin:0 auto;padding:0 1.25rem 3rem}
header{padding:2rem 0 .5rem}
h1{margin:.35rem 0;font-size:1.9rem;line-height:1.2;overflow-wrap:anywhere}
.badge{display:inline-block;margin:0;padding:.15rem .75rem;border-radius:99px;background:var(--tone);color:var(--page);
font-weight:650}
.headline{margin:0;color:var(--soft);font-size:1.05rem}
.tally{margin:1rem 0 1.5rem}.tally p{margin:.4rem 0 0;color:var(--soft)}.tally b{color:var(--ink)}
.bar{display:flex;gap:3px;height:.55rem}.bar i{border-radius:3px;min-width:.4rem}
.bar .passed{background:var(--passed)}.bar .failed{background:var(--failed)}.bar .errored{background:var(--errored)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:1px;margin:0;background:var(--card);
border:1px solid var(--line);border-radius:.6rem;overflow:hidden}
.facts div{box-shadow:0 0 0 1px var(--line);padding:.6rem .9rem}
dt{color:var(--soft);font-size:.8rem}dd{margin:0;overflow-wrap:anywhere}
small{color:var(--soft);font-size:.85em;white-space:nowrap}
h2{margin:2rem 0 .75rem;font-size:1.15rem}h2 span{color:var(--soft);font-weight:400}
article{position:relative;background:var(--card);border:1px solid var(--line);border-left:.3rem solid var(--tone);
border-radius:.6rem;padding:.85rem 1rem;margin:0 0 .7rem}
article.passed{--tone:var(--passed)}article.failed,article.errored{--tone:var(--failed)}article.errored{--tone:var(--errored)}
article.failed.warning{--tone:var(--warning)}article.failed.info{--tone:var(--info)}
h3{margin:0 10rem .2rem 0;font-size:1.02rem;overflow-wrap:anywhere}
.chips{position:absolute;top:.85rem;right:1rem;margin:0;display:flex;gap:.35rem}
.chips span{padding:0 .55rem;border:1px solid var(--line);border-radius:99px;color:var(--soft);font-size:.8rem}
.failed .chips .critical,.errored .chips .critical,.failed .chips .warning{border-color:var(--tone);color:var(--tone)}
.what{margin:.1rem 0;color:var(--soft);font-size:.88rem}
.argument{display:inline-block;margin-right:.6rem;max-width:100%}
code,pre{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{overflow-wrap:anywhere;white-space:pre-wrap}
.argument code,.measure code,li code{background:var(--code);border-radius:.3rem;padding:.05rem .35rem}
em{color:var(--soft)}
.measure{margin:.35rem 0 0}.failed .measure b{color:var(--tone)}
.share{height:.35rem;max-width:24rem;margin-top:.3rem;border-radius:99px;background:var(--code);overflow:hidden}
.share i{display:block;height:100%;background:var(--tone)}
.sample h4{margin:.7rem 0 .3rem;font-size:.85rem;font-weight:500;color:var(--soft)}
.sample ul{display:flex;flex-wrap:wrap;gap:.35rem;margin:0;padding:0;list-style:none}
pre{margin:.6rem 0 0;padding:.6rem .8rem;background:var(--code);border-radius:.4rem;white-space:pre-wrap;
overflow-wrap:anywhere}
@media (max-width:36rem){main{padding:0 .8rem 2rem}header{padding-top:1.2rem}h1{font-size:1.5rem}h3{margin-right:0}
.chips{position:static;margin:.25rem 0}}
@media print{body{background:#fff}article{break-inside:avoid}}
"""

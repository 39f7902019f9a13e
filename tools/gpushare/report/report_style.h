// The style sheets of pages and charts, and the few lines of script of the report.
//
// Series colours are told apart by hue and by marker shape; both themes keep a contrast of at least
// 3 to 1 against the page.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_STYLE_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_STYLE_H_

namespace gpushare::tool {

// Colours, and the classes of charts: for pages and for an SVG file that stands alone.
inline constexpr char kChartStyle[] = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#16191d;--soft:#5b6470;--rule:#dfe3e8;
--good:#18794e;--bad:#c62a2f;--stamp:#9a5b00;--stampbg:#fff3d9;
--s0:#1d5fd1;--s1:#c2410c;--s2:#6d28d9;--s3:#0e7c7b;--s4:#b4236a;--s5:#4d7c0f;--s6:#8a6d00;--s7:#475569;
--lc:#1d5fd1;--be:#b5761a;--alone:#79828e}
@media (prefers-color-scheme:dark){:root{--page:#101317;--card:#181c22;--ink:#e8ebef;--soft:#9aa5b1;
--rule:#2b323b;--good:#4cc38a;--bad:#ff7b7f;--stamp:#f3c969;--stampbg:#3a2d10;
--s0:#6ea8ff;--s1:#ff9d66;--s2:#b79cff;--s3:#4fd1c5;--s4:#ff8fc0;--s5:#a3d65c;--s6:#e6c34f;--s7:#a8b3c1;
--lc:#6ea8ff;--be:#c98a2e;--alone:#7d8793}}
.row{font-size:11px;fill:var(--soft);paint-order:stroke;stroke:var(--card);stroke-width:4px}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.axis{stroke:var(--soft);stroke-width:1;fill:none}
.tick,.note{font-size:12px;fill:var(--soft)}
.label{font-size:12.5px;fill:var(--ink)}
.head{font-size:14px;font-weight:600;fill:var(--ink)}
.limit{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:5 4;fill:none}
.qos{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:2 3;fill:none}
.muted{stroke:var(--soft);stroke-width:1.2;fill:none}
.line{fill:none;stroke-width:1.8}
.line.joint{stroke-width:1;stroke-opacity:.55}
.stroke{fill:none;stroke-width:2}
.mark{fill-opacity:.85;stroke:var(--card);stroke-width:1}
.mark.s0{fill:var(--s0)}.mark.s1{fill:var(--s1)}.mark.s2{fill:var(--s2)}.mark.s3{fill:var(--s3)}
.mark.s4{fill:var(--s4)}.mark.s5{fill:var(--s5)}.mark.s6{fill:var(--s6)}.mark.s7{fill:var(--s7)}
.line.s0,.stroke.s0{stroke:var(--s0)}.line.s1,.stroke.s1{stroke:var(--s1)}
.line.s2,.stroke.s2{stroke:var(--s2)}.line.s3,.stroke.s3{stroke:var(--s3)}
.line.s4,.stroke.s4{stroke:var(--s4)}.line.s5,.stroke.s5{stroke:var(--s5)}
.line.s6,.stroke.s6{stroke:var(--s6)}.line.s7,.stroke.s7{stroke:var(--s7)}
.line.alone{stroke:var(--alone);stroke-width:3}
.line.library{stroke:var(--alone);stroke-dasharray:4 3}
.mark.alone{fill:var(--alone)}.stroke.library,.stroke.alone{stroke:var(--alone)}
.lc,.mark.lc{fill:var(--lc)}.be,.mark.be{fill:var(--be)}
.arrival{fill:var(--lc)}
.eviction{stroke:var(--bad);stroke-width:.8;stroke-dasharray:2 2;fill:none}
)css";

// The page around the charts. A table fits a screen of 1400 pixels because its headings and texts
// wrap. Narrower screens show each row of it as a block, one of many columns from 1180 pixels down.
inline constexpr char kPageStyle[] = R"css(
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1360px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:18px;margin:0 0 4px}
h3{font-size:15px;margin:0 0 6px}
.case .plots{margin-top:18px}
p{margin:4px 0 10px}
.soft{color:var(--soft)}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:18px 20px;margin:18px 0}
.stamp{display:inline-block;font-weight:700;letter-spacing:.08em;font-size:12px;color:var(--stamp);
background:var(--stampbg);border:1.5px solid currentColor;border-radius:5px;padding:2px 9px;vertical-align:4px}
.verdict{font-size:19px;line-height:1.45;margin:2px 0 12px}
.good{color:var(--good)}.bad{color:var(--bad)}
td.bad::after{content:"\00a0!"}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13.5px;margin:0 0 14px}
th{font-weight:600;color:var(--soft);text-align:right;vertical-align:bottom;line-height:1.3}
th.group{text-align:center;border-bottom:0}
td{text-align:right;white-space:nowrap;vertical-align:top}
th,td{padding:5px 7px;border-bottom:1px solid var(--rule)}
.broad th,.broad td{padding:5px 5px}
.text{text-align:left}
td.text{white-space:normal;overflow-wrap:anywhere;min-width:7em}
tr>:first-child.text{padding-left:0}
tr.reference td{color:var(--soft)}
tr.measured td{border-bottom:2px solid var(--rule)}
tr.measured td:first-child{padding-left:14px;color:var(--soft);font-weight:600}
tr:last-child td{border-bottom:0}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(360px,100%),1fr));gap:14px 20px}
svg{width:100%;max-width:560px;height:auto;display:block}
svg.timeline{max-width:none}
svg.wide{min-width:720px}
svg.narrow{display:none}
svg.key{width:14px;height:14px;display:inline-block;vertical-align:-2px;margin-right:6px}
select{font:inherit;color:inherit;background:var(--page);border:1px solid var(--rule);border-radius:6px;
padding:5px 9px;max-width:100%}
.case{display:none}.case.shown{display:block}
code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
.manifest td,.manifest th{text-align:left;white-space:normal;overflow-wrap:anywhere;padding-left:0}
h1,h2,h3,p{overflow-wrap:anywhere}
)css"
                                     R"css(
@media (max-width:1180px){
.broad,.broad tbody{display:block}.broad tr.head{display:none}
.broad tr,.broad tr:last-child{display:grid;grid-template-columns:repeat(auto-fill,minmax(96px,1fr));
gap:3px 10px;padding:8px 0;border-bottom:1px solid var(--rule)}
.broad td,.broad tr.measured td{display:block;border:0;padding:0;text-align:left;white-space:normal;
overflow-wrap:anywhere;min-width:0}
.broad td:first-child{grid-column:1/-1;font-weight:600}.broad td.text:last-child{grid-column:1/-1}
.broad td:not(:first-child)::before{content:attr(data-label);display:block;color:var(--soft);font-size:11.5px}
.broad tr td:empty,.broad tr td.none{display:none}}
@media (max-width:640px){
.stack,.stack tbody{display:block}.stack tr.head{display:none}
.stack tr,.stack tr:last-child{display:grid;grid-template-columns:repeat(auto-fill,minmax(96px,1fr));
gap:3px 10px;padding:8px 0;border-bottom:1px solid var(--rule)}
.stack td,.stack tr.measured td{display:block;border:0;padding:0;text-align:left;white-space:normal;
overflow-wrap:anywhere;min-width:0}
.stack td:first-child{grid-column:1/-1;font-weight:600}.stack td.text:last-child{grid-column:1/-1}
.stack td:not(:first-child)::before{content:attr(data-label);display:block;color:var(--soft);font-size:11.5px}
.stack tr td:empty,.stack tr td.none{display:none}
svg.wide{display:none}svg.narrow{display:block}
main{padding:18px 10px 40px}.card{padding:14px 12px}}
@media print{.case{display:block}select{display:none}}
)css";

inline constexpr char kReportScript[] = R"js(
const choice=document.getElementById('choice');
function show(){for(const c of document.querySelectorAll('.case'))c.classList.toggle('shown',c.id===choice.value)}
if(choice){choice.addEventListener('change',show);show()}
)js";

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_REPORT_STYLE_H_

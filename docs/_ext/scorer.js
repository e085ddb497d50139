// How the site's search ranks what it finds (Sphinx: html_search_scorer). A reader who types "attention" wants the
// chapter; the reference has a thousand entries with that word. So: chapters whose heading has the word, then notebooks
// and guides, the class or function of exactly that name, other pages of course and guides, tables and measurements, the reference.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  score: ([page, title, anchor, description, score, file, kind]) => {
    const inHeading = kind === "title" || score >= Scorer.partialTitle;
    if (page === "reference/glossary" && kind === "title") return score + 55; // its terms
    if (kind === "object") {
      const named = score >= Scorer.objNameMatch + Scorer.objPrio[1] && !anchor.startsWith("#module-");
      return named ? score + 20 : score - 20;
    }
    if (/^course\/(?!lecturer|scratch\/)/.test(page)) return score + (inHeading ? 60 : 20);
    if (/^(course|start|guides)\//.test(page)) return score + (inHeading ? 50 : 20);
    if (/^(index|claims|systems|results|reference\/(glossary|equations))$/.test(page)) return score + 15;
    return score;
  },
};

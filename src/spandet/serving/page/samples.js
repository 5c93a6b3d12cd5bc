// Example texts, written for this page.

export const SAMPLES = [
  {
    name: "Biomedical",
    labels: /protein|dna|rna|cell|gene/i,
    text: "Activation of the human interleukin-2 receptor alpha chain promoter by NF-kappa B requires a "
      + "functional CD28 response element in Jurkat T cells. Mice without the gene had no IL-9 mRNA in "
      + "their bone marrow macrophages.\n\nWe also found that the glucocorticoid receptor blocks "
      + "transcription of the mouse IL-6 gene, and that a monoclonal anti-CD3 antibody restores it in "
      + "peripheral blood lymphocytes.",
  },
  {
    name: "News",
    labels: /^(per|org|loc|gpe|person)/i,
    text: "Ana Ferreira, the mayor of Lisbon, met engineers from the University of Porto on Tuesday to "
      + "talk about the new harbour. The Portuguese Ministry of Transport will pay a third of it; the "
      + "rest comes from the European Investment Bank in Luxembourg.\n\n“Nobody in Setúbal was asked,” "
      + "said João Pinto, who chairs the Port Workers’ Union of Setúbal.",
  },
  {
    name: "Nested",
    labels: /$^/,
    text: "The promoter of the mouse IL-2 receptor beta chain gene binds a complex of the CD28 response "
      + "element binding protein with p50. The chair of the audit committee of the University of "
      + "Northern Iowa’s alumni association spoke first.",
  },
  {
    name: "Discontinuous",
    labels: /problem|disorder|adr|symptom|finding|disease/i,
    text: "She has had pain in the left knee and shoulder since May, with swelling of hands and feet. "
      + "There was no fracture of the second or third rib, and the left atrium is mildly dilated.",
  },
  {
    name: "Right to left",
    labels: /$^/,
    text: "وجد الباحثون في جامعة القاهرة أن البروتين NF-kappa B ينشط الجين IL-2 في الخلايا التائية "
      + "البشرية.\n\nהחוקרים באוניברסיטה העברית בירושלים מצאו שהחלבון NF-kappa B מפעיל את הגן IL-2 "
      + "בתאי T של בני אדם.",
  },
];

// Examples that match the labels of the model come first.
export const samplesFor = (labels) => {
  const matches = (sample) => labels.some((label) => sample.labels.test(label));
  return [...SAMPLES].sort((a, b) => matches(b) - matches(a));
};

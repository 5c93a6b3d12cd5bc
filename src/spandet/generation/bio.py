"""Grammar of biomedical abstracts: protein, gene, rna, cell_type, cell_line, disease, chemical.

Spans exclude articles ("the [IL-2 gene]"). The same code may be a protein, a gene or a cell line,
and the meaning of an acronym depends on the document. Authors, figures, viruses and strains of mice
look like names and are not entities.
"""

from spandet.generation.bio_entities import ENTITIES

TOPICS = ("signalling", "cancer", "treatment", "infection")

STORIES = """
tag NN = absence activation activity chromosome copy degradation deletion diet dose effect
    expression Fig h kg level loss manner mg need nM number P phosphorylation presence production
    proliferation response role secretion stimulation study survival total treatment work
tag NNS = animals cases data differences doses effects experiments mechanisms results samples
    signals times weeks
tag JJ = clear common dependent due further independent little normal previous significant similar
    single standard strong unknown viral
tag JJR = higher more
tag RB = directly however previously therefore together
tag VB = express understand
tag VBP = conclude remain show suggest
tag VBZ = acts binds carries causes controls depends leads maps predicts protects regulates
    requires suggests
tag VBD = examined failed increased received reported required responded showed tested
tag VBN = approved associated blocked cloned derived described detected expressed found given
    infected inserted kept known mutated performed phosphorylated reduced seen shown stored
    suggested taken treated
tag VBG = using
tag FW = al et
tag SYM = =

# ----------------------------------------------------------------------- the names of one document

star = | <protein {code@star}>
# A bare code is a gene where it is mutated, deleted or mapped.
star_gene =
    | the <gene {star} gene>
    | <gene {code@star}>
star_mrna = | <rna {star} mRNA>
factor = | <protein {factor_name@lead}> ( {factor_short} )
factor_short = | <protein {^factor_name@lead}>
factor_name =
    | {organ} {factor_part} factor {greek}
    | {organ} {factor_part} factor
    | nuclear {factor_part} factor {greek}
    | {organ} {substrate} {enzyme}
    | {tissue} heat shock protein
factor_part/NN = growth repair necrosis binding
ailment = | <disease {ailment_name@lead}> ( {ailment_short} )
ailment_short = | <disease {^ailment_name@lead}>
ailment_name = | {course} {organ} {illness}
agent = | <chemical {agent_name@lead}> ( {agent_short} )
agent_short = | <chemical {^agent_name@lead}>
agent_name = | {radical} {radical} {acid}
our_cells = | <cell_type {species@ours} {plain_cells@ours}>
our_cells_short = | <cell_type {plain_cells@ours}>
our_line = | <cell_line {line_code@ours} cells>
our_line_short = | <cell_line {line_code@ours}>
our_virus = | {virus@ours}
our_infection = | <disease {our_virus} infection>
# The genome of a retrovirus is RNA and becomes DNA.
our_genome = | <gene+rna {our_virus} genome>

# ------------------------------------------------------------------------------ statements

# The label of what follows depends on the document.
about =
    |2 little is known about
    |2 we therefore examined the role of
    |2 further experiments showed strong effects of
    | previous work has suggested a role for
    | the differences were due to
    | there is a clear need to understand
where =
    |3
    |2 in {cell_type}
    |2 in {cell_line}
    | in patients with {disease}
    | in the absence of {protein}
note =
    |6
    | ( Fig . {digit-}/CD )
    | ( P = 0.0{digit-}/CD )
    | , as described by {family} et al . in 201{digit-}/CD
how =
    |5
    |2 in a dose dependent manner
    |3 in {cell_type} {note}
    |2 in {cell_line} {note}
    |2 in the presence of {chemical}
    |2 in the absence of {protein}
    |2 after {number} h of stimulation with {protein}
    | , but not in {cell_type}
    | in patients with {disease}
    | , and this effect was blocked by {chemical}
    | , which suggests that {protein} acts directly on {gene}
did/VBD = increased reduced blocked induced
outcome =
    | the expression of {rna}
    | the expression of the {whole_gene}
    | the activity of {protein}
    | the phosphorylation of {protein}
    | the secretion of {protein_name}
    | the degradation of {rna}
    | the proliferation of {cell_type}
    | the survival of {cell_line}
    | the binding of {protein} to {gene}
locus =
    |3 <gene {code}>
    |3 {gene}
    |2 {star_gene}

common* =
    |2 treatment with {chemical} {did} {outcome} {how} .
    |2 {protein} {did} {outcome} {how} .
    |2 we show that {protein} binds to {gene} {how} .
    |2 {protein} and {protein} are expressed in {cell_type} {note} .
    |2 {rna} was detected in {cell_line} and {cell_type} {note} .
    |2 {cell_line} and {our_cells} were treated with {small_number} nM {plain_chemical}
        for {number} h .
    | {hormone} {did} {outcome} {how} .
    |2 {about} {star} {where} .
    | mutations in {locus} were found in {number} of {digit-}00/CD patients with {disease} .
    | {star_gene} maps to chromosome {digit-}/CD {note} .
    | deletion of {locus} causes {disease} {note} .
    | {locus} was cloned from {cell_line} {note} .
    | the copy number of {locus} was {decimal} times higher in {cell_line} {note} .
    | {disease} is associated with the loss of {surface} in {cell_type} {note} .
    | {star} is required for {outcome} {how} .
    | {star_mrna} was found in {cell_type} but not in {cell_line} {note} .
    | {cell_line} failed to express {rna} {note} .
    | we conclude that {star} regulates {outcome} {how} .
    |9 {filler}
# Sentences without entities, despite capitals and digits.
filler* =
    | all samples were stored for {number} {period} before {procedure} {note} .
    | {family} and {family} reported similar results in {number} cases {note} .
    | the differences were significant ( P = 0.0{digit-}/CD ) in all but {number} {subjects} .
    | C57/NN mice were kept on a normal diet for {number} {period} {note} .
    | the results of {number} experiments are shown in Fig . {digit-}/CD .
    | the mechanisms of this {process} remain unknown {note} .
    | {procedure} was performed as described previously ( {family} et al . , 201{digit-}/CD ) .
    | however , a total of {number} {subjects} showed no {process} after {number} {period} .
    | this {process} requires {number} independent signals {note} .
    | {number} {subjects} received the standard {procedure} for {number} {period} .
    | taken together , our data suggest that this {process} is more common than previously known .
period/NNS = days weeks hours months years
procedure/NN = analysis treatment microscopy sequencing electrophoresis staining
subjects/NNS = patients animals subjects controls volunteers
process/NN = response activation apoptosis inhibition change adhesion

# ----------------------------------------------------------------------------------------- topics

signalling_title =
    | {star} regulates {gene} in {our_cells}
    | a role for {factor_short} in {our_cells}
    | activation of {our_cells} by {star}
signalling_opening =
    | {factor} regulates {outcome} in {our_cells} , but the role of {star} is unknown .
    | {star} is expressed in {our_cells} , where it binds to {factor} .
    | the response of {our_cells} to {factor} depends on {star} {how} .
signalling_body =
    | {signalling_news}
    | {common}
signalling_news* =
    |2 {about} {factor_short} {where} .
    | {factor_short} {did} {outcome} {how} .
    | {star} and {factor_short} {did} {outcome} {how} .
    | in {our_cells_short} , {factor_short} is phosphorylated by {protein} {note} .
    | {our_cells_short} lacking {star} responded to {factor_short} {how} .
    | binding of {factor_short} to {gene} requires {protein} {how} .
    | the level of {rna} in {our_cells_short} was {decimal} times higher {note} .

cancer_title =
    | loss of {star} in {our_line}
    | {star_gene} in {disease}
    | {star} controls the growth of {our_line}
cancer_opening =
    | we examined the role of {star} in {cell_line} and in {our_line} lacking {locus} .
    | {our_line} were derived from patients with {disease} and showed high levels of {star} .
    | {star_gene} is mutated in {disease} and in {our_line} {note} .
cancer_body =
    | {cancer_news}
    | {common}
cancer_news* =
    |2 {about} {our_line_short} {where} .
    | {our_line} {did} {outcome} {how} .
    | {star_gene} was inserted into {our_line_short} using {gene} {note} .
    | the growth of {our_line} in mice was reduced by {chemical} {note} .
    | in {our_line} , {star_mrna} increased within {number} h {note} .
    | like/IN {our_line_short} , {cell_line} required {star} for the expression of {rna} .
    | {our_line} and {cell_line} showed similar levels of {rna} {how} .

treatment_title =
    | {agent_short} in {ailment}
    | effects of {agent_short} on {star}
    | {ailment_short} : a study of {number} patients
treatment_opening =
    | {number} patients with {ailment} received {agent} for {number} weeks .
    | {agent} is approved for the treatment of {ailment} , but its effect on {star} is unknown .
    | we tested whether {agent} {did} {outcome} in patients with {ailment} .
treatment_body =
    |2 {treatment_news}
    | {common}
treatment_news* =
    |2 {about} {agent_short} {where} .
    |2 {about} {ailment_short} {where} .
    | {agent_short} {did} {outcome} {how} .
    | {agent_short} was given at doses of {small_number} mg per kg {where} .
    | {ailment_short} was seen in {number} of the animals {note} .
    | patients with {ailment_short} and {disease} responded to {chemical} {note} .
    | in {ailment_short} , {protein} leads to the loss of {cell_type} {note} .
    | {star} predicts the response to {agent_short} {how} .

infection_title =
    | {our_infection} of {our_cells}
    | {star} and the {our_genome}
    | the response to {our_virus} in {our_cells}
infection_opening =
    | {our_virus} causes {disease} in mice , and {our_infection} was found in {our_cells} .
    | the {our_genome} carries a single gene that/WDT regulates {star} in {our_cells} .
    | {our_infection} was seen in {number} of {digit-}00/CD patients with {disease} .
infection_body =
    | {infection_news}
    | {common}
infection_news* =
    |2 {about} {our_infection} {where} .
    | the {our_genome} was found in {our_cells_short} and in {cell_line} {note} .
    | the {our_genome} binds to {protein} {how} .
    | {our_cells_short} were infected with {our_virus} and treated with {chemical} {note} .
    | {star} protects {our_cells_short} against {our_virus} {note} .
    | {chemical} {did} the viral production in {our_cells_short} {note} .
    | {rna} was {decimal} times higher after infection with {our_virus} {note} .
"""

GRAMMAR = ENTITIES + STORIES

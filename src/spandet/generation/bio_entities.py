"""Names and entities of biomedicine: their parts and their nesting."""

ENTITIES = """
# --------------------------------------------------------------------------------- parts of names

consonant- = B C D F G H L M N P R S T
vowel- = E Y
digit- = 1 2 3 4 5 6 7 8 9
greek- = alpha beta gamma kappa
code- = {consonant-}{consonant-}{consonant-}{digit-} {consonant-}{vowel-}{consonant-}{digit-}
    {consonant-}{vowel-}{consonant-}{consonant-}{digit-} {consonant-}{consonant-}-{digit-}
    {consonant-}{vowel-}{consonant-}-{digit-} {consonant-}{consonant-}{vowel-}{consonant-}
drug- = {drug_start-}{drug_middle-}{drug_end-} {drug_start-}{drug_end-}
drug_start- = hal tol met cor vin pra lor den ket sim rab ol fen dex zol cla nor
drug_middle- = bi ra vo xi ta ne lo du ma
drug_end- = mide zole pril statin cillin mycin sone nib vir mine phylline
family- = {stem-}{family_end-}
stem- = Hal Mar Bran Wex Ash Thorn Kel Dun Gren Har Lang Mor Nor Pem Rad Stan Tar Ver Wil Bel Cor
family_end- = son man er ov ez ini sen ski ard ell ick ow kins worth
virus- = {virus_start-}{virus_end-}virus
virus_start- = her par fla ret ade cal ort pox nor
virus_end- = eno opa avi ora ili eri obi

# ----------------------------------------------------------------------------------- single words

# Proteins, genes and cell lines have the same codes.
code/NN = {code-}
line_code/NN = {code-} {consonant-}{consonant-}{consonant-}-{digit-} {consonant-}-{digit-}{digit-}
compound_code/NN = {consonant-}{consonant-}-{digit-}{digit-}{digit-}
drug/NN = {drug-}
family/NNP = {family-}
virus/NN = {virus-}
number/CD = two three four five six 1{digit-} {digit-}{digit-}
small_number/CD = {digit-} {digit-}{digit-} {digit-}00
decimal/CD = {digit-}.{digit-} {digit-}{digit-}.{digit-}
greek/NN = alpha beta gamma delta
species/JJ = human murine bovine rat
state/JJ = activated resting primary immature infected
tissue/NN = spleen liver thymus kidney lung skin colon
organ/JJ = renal hepatic pulmonary intestinal thymic cardiac ocular bronchial dermal
course/JJ = acute chronic severe juvenile congenital progressive early diffuse benign nocturnal
illness/NN = anemia fibrosis nephritis arthritis carcinoma asthma colitis pneumonia sclerosis
    hepatitis dystrophy stenosis
malignancy/NN = leukemia lymphoma
salt/NN = hydrochloride acetate citrate
radical/NN = dimethyl phenyl acetyl butyl ethyl chloro carboxy nitro hydroxy sulfonyl iodo
acid/NN = succinate halvate benzoate phosphate acetate citrate nitrate fumarate
enzyme/NN = kinase phosphatase protease synthase ligase
substrate/NN = tyrosine serine lipid histone glucose
element/NN = promoter enhancer silencer
cells/NNS = macrophages monocytes neutrophils fibroblasts hepatocytes lymphocytes neurons
lineage/NN = T B mast NK stem

# --------------------------------------------------------------------------------------- entities

tag NN = antibody binding blood bp cell chain complex control deficiency domain exon factor form
    fragment gene genome growth heat heterodimer infection inhibitor line mRNA protein receptor
    shock site subunit syndrome transcript variant
tag NNS = cells levels mice mutations patients
tag JJ = antisense high monoclonal nuclear peripheral rare recombinant soluble
tag VBG = expressing following lacking
tag VBN = caused formed isolated spliced transfected
tag RB = alternatively stably

# Names have no article; {protein} and similar rules add one outside the span.
protein_name =
    |7 <protein {code}>
    |2 <protein IL-{digit-}/NN>
    |2 <protein CD{digit-}{digit-}/NN>
    | <protein {consonant-}{consonant-}{consonant-}-{greek-}/NN>
    | <protein {consonant-}{consonant-}-{greek-}/NN {consonant-}/NN>
    | <protein p{digit-}{digit-}/NN>
    |2 <protein {substrate} {enzyme}>
surface =
    |2 {protein_name}
    | the {receptor}
protein =
    |9 {protein_name}
    |7 the {protein_noun}
receptor =
    |3 <protein {protein_name} receptor>
    |2 <protein {protein_name} receptor {greek} chain>
protein_noun =
    |9 {receptor}
    |6 <protein {greek} subunit of the {protein_name} receptor>
    |4 <protein monoclonal antibody to {protein_name}>
    |4 <protein soluble form of {protein_name}>
    |6 <protein heterodimer of {protein_name} and {protein_name}>
    |2 <protein complex formed by {surface} , {surface} and the {greek} chain of {surface}>
    |2 <protein complex of {protein_name} with the {greek} subunit of {surface} and the
        binding domain of {surface} from {cell_type}>

whole_gene =
    |6 <gene {protein_name} gene>
    |3 <gene {species} {protein_name} gene>
    |3 <gene {receptor} gene>
gene =
    |16 the {whole_gene}
    |9 the {gene_region}
    |3 <gene exon {digit-}/CD of the {whole_gene}>
gene_region =
    |4 <gene {protein_name} {element}>
    |5 <gene {whole_gene} {element}>
    |4 <gene binding site for {protein_name} in the {whole_gene}>
    | <gene {digit-}{digit-}0/CD bp fragment of the {whole_gene} following the binding site for
        {protein} and {protein}>
rna =
    |6 <rna {protein_name} mRNA>
    |3 <rna miR-{digit-}{digit-}/NN>
    |2 <rna {species} {protein_name} mRNA>
    | the <rna antisense transcript of the {whole_gene}>
    | an <rna alternatively spliced transcript of the {whole_gene} lacking
        <gene exon {digit-}/CD>>

plain_cells =
    |2 {cells}
    |3 {lineage} cells
cell_type =
    |5 <cell_type {plain_cells}>
    |4 <cell_type {state} {plain_cells}>
    |4 <cell_type {species} {plain_cells}>
    |3 <cell_type {species} peripheral blood {plain_cells}>
    |5 <cell_type <cell_type {plain_cells}> expressing {surface}>
    |2 <cell_type <cell_type {state} {plain_cells}> from the {tissue} of mice lacking the
        {whole_gene}>
    |2 <cell_type <cell_type {plain_cells}> isolated from the {tissue} of patients with {disease}>
    | <cell_type <cell_type {plain_cells}> from mice lacking the {whole_gene} and expressing high
        levels of {surface} and {surface} under the control of {gene}>
cell_line =
    |5 <cell_line {line_code} cells>
    |3 <cell_line {line_code}>
    |5 the {line_noun}
line_noun =
    |4 <cell_line {disease_name} cell line {line_code}>
    |4 <cell_line {species} <cell_type {lineage} cell> line {line_code}>
    |2 <cell_line <cell_line {line_code}> variant transfected with the {whole_gene}>
    | <cell_line variant of the {disease_name} cell line {line_code} stably expressing {surface}
        and the {greek} chain of {surface} under the control of {gene}>

disease_name =
    |4 <disease {organ} {illness}>
    |4 <disease {course} {organ} {illness}>
    |3 <disease <cell_type {lineage} cell> {malignancy}>
    |2 <disease {family} syndrome>
    |2 <disease {course} {illness}>
disease =
    |16 {disease_name}
    |3 <disease {protein_name} deficiency>
    |2 <disease {virus} infection>
    | <disease {course} {receptor} deficiency>
    |3 a <disease rare form of {disease_name} caused by mutations in {gene}>

plain_chemical =
    |2 <chemical {drug}>
    | <chemical {compound_code}>
    | <chemical <chemical {drug}> {salt}>
chemical =
    |12 {plain_chemical}
    |2 the <chemical {protein_name} inhibitor <chemical {drug}>>
    |2 a <chemical soluble inhibitor of {protein}>
    | {hormone}
# A protein that is used as a drug has both labels.
hormone = | <chemical+protein recombinant {species} {code}>
"""

"""Grammar of clinical notes: symptom, drug, procedure. Many symptoms are discontinuous.

Coordinated symptoms share words: "left and right knee pain" is "left … knee pain" and "right knee
pain". Body part and complaint may be apart: "the knee was badly swollen". Body parts that are only
examined, and complaints that are only asked for, are not symptoms.
"""

TOPICS = ("visit", "ward")

WORDS = """
digit- = 1 2 3 4 5 6 7 8 9
drug- = {drug_start-}{drug_middle-}{drug_end-} {drug_start-}{drug_end-}
drug_start- = hal tol met cor vin pra lor den ket sim rab fen dex zol
drug_middle- = bi ra vo xi ta ne lo
drug_end- = mide zole pril cillin mycin sone mine

drug/NN = {drug-}
number/CD = two three four five six 1{digit-}
dose/CD = {digit-} {digit-}0 {digit-}00
side/JJ = left right
# Body parts and states in one sentence come from two lists, so that none occurs twice.
upper/NN = neck shoulder elbow wrist thumb jaw
lower/NN = hip knee ankle heel toe foot
feeling/NN = pain swelling stiffness numbness tenderness weakness
early_state/JJ = swollen stiff numb
late_state/JJ = sore tender weak
course/JJ = sharp dull constant sudden
general/NN = fever nausea headache cough fatigue dizziness insomnia vertigo
degree/RB = badly slightly clearly still visibly
time/NN = night work rest lunch training
unit/NNS = days weeks months hours
person/NN = teacher driver nurse farmer student baker
scan/NN = ultrasound radiography tomography
tag JJ = brief left mild normal quiet right worse
tag NN = accident back fall family follow-up infusion injection mg night note nothing nurse patient
    tablet work
tag NNS = complaints days results
tag RB = ago first so
tag JJR = further
tag VBD = asked began came denied described discussed got helped mentioned remained reported showed
    slept took
tag VBN = added examined felt given noted planned seen started stopped
"""

SYMPTOMS = """
part =
    | {upper}
    | {lower}
site =
    |2 {part}
    | {side} {part}
symptom =
    |4 {whole}
    |5 {shared}
whole =
    |2 <symptom {general}>
    |2 <symptom {site} {feeling}>
    | <symptom {course} {feeling} in the {site}>
    | <symptom {feeling} of the {site}>
# Coordinated symptoms; shared words occur only once.
shared =
    |2 <symptom:a left> and <symptom right <symptom:a {part} {feeling}>>
    | <symptom:a right> and <symptom left <symptom:a {part} {feeling}>>
    |2 <symptom:a {upper}> and <symptom {lower} <symptom:a {feeling}>>
    | <symptom:a {upper}> , <symptom:b back> and <symptom {lower} <symptom:ab {feeling}>>
    |2 <symptom <symptom:a {feeling} of the> {upper}> and <symptom:a {lower}>
    | <symptom:a {course}> but <symptom brief <symptom:a {feeling} in the {site}>>
# Body part and state apart.
apart =
    |3 the <symptom:a {site}> was {degree} <symptom:a {early_state}>
    | the <symptom:a {site}> is {degree} <symptom:a {late_state}> at {time}
    | <symptom:a {feeling}> was felt in the <symptom:a {site}>
    | <symptom:a {feeling}> , mild at first , <symptom:a of the {site}>
    |2 the <symptom:ab {upper}> and the <symptom:cd {lower}> were
        <symptom:ac {early_state}> and <symptom:bd {late_state}>
    | <symptom:ab {feeling}> was felt in the <symptom:a left> and
        <symptom:b right <symptom:a {part}>>
"""

STORIES = """
since =
    |2 since the fall
    | for {number} {unit}
    | after {time}
    |3
medicine = | <drug {drug}>
treatment =
    |3 {medicine}
    | <procedure injection of {medicine}>
    | <procedure infusion of {medicine}>
test =
    | <procedure {scan} of the {site}>
    | <procedure {scan}>

visit_title =
    | {whole} : a follow-up
    | a note on {whole}
visit_opening =
    | a {person} came because of {symptom} {since} .
    | the patient , a {person} , reported {symptom} {since} .
visit_body =
    |3 {common}
    | {visit_news}
visit_news* =
    | we discussed {treatment} , but the patient denied any {whole} .
    | the patient took {medicine} before work and mentioned {symptom} .
    | a tablet of {medicine} helped against {symptom} {since} .
    | {symptom} began {number} {unit} ago .

ward_title =
    | {number} days of {whole}
    | {test} after a fall
ward_opening =
    | the first note described {symptom} {since} .
    | after an accident , {apart} , and {test} was planned .
ward_body =
    |3 {common}
    | {ward_news}
ward_news* =
    | {dose} mg of {medicine} were given for {symptom} .
    | {treatment} was stopped because of {symptom} .
    | in the night , {apart} {since} .
    | {test} showed nothing , and {treatment} was added .

common* =
    |3 {apart} {since} .
    |3 {apart} , and there was {symptom} {since} .
    |2 there was {symptom} and {whole} {since} .
    |2 {whole} and {symptom} were noted {since} .
    |2 {symptom} got worse , so {treatment} was started .
    | {dose} mg of {medicine} helped , but {apart} .
    |2 {medicine} and {medicine} were stopped {number} {unit} ago .
    |5 {filler}
# Sentences without entities.
filler* =
    | the {site} was examined {number} {unit} ago .
    | the {upper} and the {lower} were normal .
    | the family asked for the results at {time} .
    | a {person} was seen by the nurse .
    | the patient slept , and the {site} remained quiet .
    | further complaints were not noted .
"""

GRAMMAR = WORDS + SYMPTOMS + STORIES

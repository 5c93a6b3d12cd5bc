"""Names and entities of news: their parts and their nesting."""

ENTITIES = """
# ------------------------------------------------------------------------- the words of the rules

tag NN = anything battle border break candidate captain care child closure club coach coalition
    coast comment committee conference damage decision delay department deputy director dispute
    election energy envoy everything future goal government group head headquarters housing inquiry
    investigation leader mayor merger minister negotiator nobody office port position
    prize professor programme question reform region report risk sale scandal school share
    shortage show support survey time transport vote warning water weather week word writer
tag NNS = costs details documents drawings fans firefighters groups headlines hills
    hospitals hours jobs members minutes newspapers paintings parts prices reporters rights rules
    schools shares talks trains villages voters
tag JJ = chief clean drinking due few fishing former joint last likely little many most
    much new next old public special trained unsafe working
tag JJR = more worse
tag RBR = earlier
tag CD = million
tag RB = home late north outside so south
tag IN = along around like
tag VB = act believe buy continue depend explain give miss move play reach send travel
tag VBP = disagree sign want
tag VBZ = backs employs leaves makes opens remains resigns shines shows votes
tag VBG = according leading showing
tag VBN = agreed asked based born built called chaired changed closed discussed expected found
    founded gone heard held informed injured invited led made opened published renovated seen set
    signed stopped supported taken worked
tag VBD = beat bought came compared criticised destroyed died elected ended fell joined lasted
    left lent lost met needed ordered praised presented reached read refused replaced rose said
    scored sold spoke studied told travelled visited waited warned won wrote

# --------------------------------------------------------------------------------- parts of names

stem- = Hal Mar Bran Wex Ash Thorn Kel Dun Fair Gren Har Lang Mor Nor Oak Pem Rad Stan Tar Ver
    Wil Yar Bel Cor Dal Ell Fen Gar Hex Kir Lin Mil Ost Pres Rus Sel Tib Wal Black Stone West Lock
    Brad Car Whit Der Eas Ful
place_end- = ton ford bury ham ley wick port field stead mouth dale burn mere combe bridge
family_end- = son man er ov ez ini sen ski ard ell ick ow kins worth as
plain- = {stem-}{family_end-}
town- = {stem-}{place_end-}
family- = {plain-} {plain-} {plain-} {plain-} {town-} {town-} {town-} {plain-}-{plain-}
country- = {land-}{land_end-}
land- = Vel Kar Tal Or Zan Mol Bre Sar Lith Dor Hev Ul Pan Cas Rom Tur
land_end- = dia ovia enia ria tania gia lonia
given- = {given_start-}{given_end-}
given_start- = El Mar An Jo Ka Da Lu Ro Sa Ti Mi Ne Ol Pe Vi Ha Be So Re
given_end- = ena ria na nas vid lia ra mas ton dor nik lene bert rick mira lan
brand- = {brand_start-}{brand_end-}
brand_start- = Vo Ne Lu Tri Al Om Qua Sy Pra Xe Ze Ori Ka Ste
brand_end- = tex vex lux dyne corp mar nova plex tron gen stra via
letter- = A B C D E F G H J K L M N P R S T W
digit- = 1 2 3 4 5 6 7 8 9
count- = two three four five

# ----------------------------------------------------------------------------------- single words

given/NNP = John Anna Peter Maria Thomas Clara Victor Ruth {given-} {given-} {given-} {given-}
    {given-} {given-} {given-} {given-}
family/NNP = {family-}
town_name/NNP = {town-}
country_name/NNP = {country-}
demonym/JJ = {country-}n
brand/NNP = {brand-} {brand-} {family-}
year/CD = 198{digit-} 199{digit-} 200{digit-} 201{digit-}
number/CD = two three four five six eight nine ten 1{digit-} {digit-}{digit-} {digit-}00
amount- = {digit-} {digit-}.{digit-} {digit-}{digit-}
amount/CD = {amount-}
percent/CD = {amount-}%
score/CD = 1-0 2-0 2-1 3-1 3-2 4-2 3-0
weekday/NNP = Monday Tuesday Wednesday Thursday Friday Saturday Sunday
month/NNP = January February March April June July August September October November December
company_kind/NNP = Holdings Motors Steel Airlines Energy Foods Group Bank Pharma Shipping
portfolio/NNP = Transport Finance Health Education Agriculture Defence Justice Energy
science/NNP = Marine Polar Urban Rural Economic Climate
club_kind/NNP = United City Rovers Wanderers Athletic Rangers
head/NN = chairman director president head secretary treasurer spokesperson
job/NN = lawyer teacher engineer surgeon baker farmer architect pilot nurse economist
subject/NN = physics history law economics geology philosophy
department/NN = engineering planning finance security press research
side/JJ = northern southern eastern western
daytime/NN = morning afternoon evening night
adverb/RB = quietly reluctantly publicly finally firmly
adjective/JJ = rural regional private local small foreign
folk/NNS = residents students workers drivers farmers visitors neighbours pensioners volunteers
disaster/NN = flood fire earthquake landslide blackout explosion
festival/NNP = Film Jazz Flower Book Harvest
contest/NNP = Coastal Winter Continental Lakes
works/NN = shipyard steelworks brewery warehouse
gathering/NN = meeting hearing debate session ceremony
lack/NN = result agreement vote incident surprise
product/NNP = Falcon Meteor Aurora Comet Delta Vega
title_noun/NNP = Orchard Harbour Winter Garden Mirror River Letter Clock
title_adjective/JJ = Silent Last Hidden Broken Golden Second

# --------------------------------------------------------------------------------------- entities

honorific =
    | Mr .
    | Ms .
    | Mrs .
    | Dr .
name =
    |9 {given} {family}
    | {given} {letter-}/NNP . {family}
person =
    |12 <person {name}>
    |4 <person {honorific} {family}>
    |4 <person {post} {name}>
    |2 <person the <role {job}> {name}>
    |2 <person {long_post} {name}>
post =
    |2 <role {portfolio} Minister>
    |2 <role {town} Mayor>
    | <role Judge>
    | <role Colonel>
    | <role former {country} President>
long_post =
    |2 <role former {head} of {organisation}>
    | <role deputy mayor of {town}>
    | <role {company} {head}>
role =
    |5 <role {head} of {organisation}>
    |3 <role mayor of {town}>
    |2 <role {country} 's {portfolio} minister>
    |2 <role professor of {subject} at {university}>
    |2 a <role {job}>
    | <role captain of {club}>
    | {long_role}
long_role =
    | <role special envoy of {public_body} for {issue} in {place}>
    | <role deputy head of the {department} department at {organisation}>
    | <role former {head} of {organisation} and now {head} of {organisation}>
    | <role chief negotiator for {organisation} in the dispute over {issue} with {any_body}>
office_holder =
    | <person+role the {head} of {organisation}>
    | <person+role the mayor of {town}>
    | <person+role the {portfolio} minister of {country}>

town = | <place {town_name}>
country = | <place {country_name}>
place =
    |12 {town}
    |6 {country}
    |4 <place {town} , {country}>
    |2 <place {side} {country}>
    |2 <place the port of {town}>
    |2 <place the hills {near} {town}>
    | <place the border region between {country} and {country}>
    | <place the fishing villages along the {side} coast of {country} between {town} and {town}>
near =
    | north of
    | south of
    | around

company =
    |4 <organisation {brand}>
    |4 <organisation {brand} {company_kind}>
    | <organisation {family} & Sons>
    | <organisation {letter-}{letter-}{letter-}/NNP>
university =
    | <organisation the University of {town}>
    | <organisation {town} University>
public_body =
    |3 <organisation the Ministry of {portfolio}>
    |2 <organisation the {demonym} Ministry of {portfolio}>
    |3 <organisation {town} City Council>
    | <organisation the {town} Fire Department>
    |2 <organisation the {town} Institute of {science} Research>
club = | <organisation {town} {club_kind}>
any_body =
    |3 {company}
    |3 {public_body}
    | {university}
organisation =
    |24 {any_body}
    |2 {club}
    |2 <organisation the {department} department of {any_body}>
    |2 <organisation the {town} office of {company}>
    |4 {panel}
panel =
    |4 <organisation the committee of inquiry into {catastrophe}>
    |2 <organisation the committee of inquiry into {catastrophe} chaired by {person}>
    |2 <organisation the working group on {issue} set up/RP by {any_body}>
    |2 <organisation the coalition of {number} {adjective} groups led by {any_body}
        and supported by {any_body}>
    |3 <organisation the working group on {issue} set up/RP by {any_body} and {organisation}
        after {catastrophe} and chaired by {person} , {role}>
    |2 <organisation the joint {department} committee of {public_body} , {company} and {university}
        that/WDT was founded after {event} to explain {catastrophe}>

facility =
    |3 <facility {town} Airport>
    |3 <facility the {family} Bridge>
    |3 {arena}
    |2 <facility the {family} Museum>
    | {hospital}
    | <facility the old {works} {near} {town}>
    | <facility the {works} of {company} in {place}>
arena =
    |2 <facility {company} Arena>
    | <facility the {town} Stadium>
hospital =
    |2 <facility+organisation {town} General Hospital>
    | <facility+organisation the {family} Clinic>
event =
    |2 {catastrophe}
    |3 {occasion}
cup =
    |2 <event the {year} {contest} Cup>
    | <event the {contest} Games>
catastrophe =
    |4 <event the {year} {disaster} in {place}>
    |2 <event the {disaster} at {facility}>
    | <event the battle of {town}>
occasion =
    |3 <event the {town} {festival} Festival>
    |2 <event the {month} election>
    |3 {cup}
    | <event the {count-}-day/JJ conference on {issue} held in {place} and opened by {person}>
"""

"""Grammar of news: person, role, organisation, place, facility, event.

Spans include articles ("the University of Halton"). Persons, towns, clubs and companies may have
the same name: only the sentence or the document shows which one is meant. Demonyms, months,
products and titles of works are capitalised and are not entities.
"""

from spandet.generation.news_entities import ENTITIES

TOPICS = ("politics", "business", "sport", "accident", "culture")

STORIES = """
# ----------------------------------------------------------------------- the names of one document

hero = | <person {given@hero} {family@hero}>
hero_short = | <person {family@hero}>
home = | <place {town_name@home}>
lead = | <organisation {brand@lead} {company_kind@lead}>
lead_short = | <organisation {brand@lead}>
rival = | {company@rival}
party = | <organisation the {party_name@lead}>
party_name = | {party_kind} {party_aim} Party
party_kind/NNP = National Free United Radical People
party_aim/NNP = Reform Labour Green Farmers Justice
party_short = | <organisation the {^party_name@lead}>
our_club = | <organisation {home} {club_kind@lead}>
# A club has the name of its town, which is then not a place.
our_club_short = | <organisation {town_name@home}>
site = | <facility the {family@site} {site_kind@site}>
site_short = | <facility the {family@site}>
site_kind/NNP = Bridge Tunnel Tower Dam Hotel
museum = | <facility the {home} Museum of {museum_kind@lead} Art>
museum_short = | <facility the Museum of {museum_kind@lead} Art>
museum_kind/NNP = Modern Folk Ancient Naval Island Textile Glass Poster Stone

# ------------------------------------------------------------------------ topics of statements

issue =
    | fishing rights
    | the housing shortage
    | clean drinking water
    | the reform of {adjective} schools
    | energy prices
    | the future of {adjective} hospitals
    | public transport
    | child care
quote =
    | we will not give up/RP
    | it could have been much worse
    | nobody asked/VBD us about {issue}
    | I/PRP have never seen anything like it
    | we do not believe a word of it
claim =
    |3 the talks would continue in {month}
    |3 no decision on {issue} had been made
    |3 the costs could reach $ {amount} million
    | {organisation} had been informed in {month}
    | {person} would have/VB to explain the delay
    | {place} needed more time
    | {event} had changed everything
    |2 {number} jobs were at risk
when =
    |3 on {weekday}
    |2 on {weekday} {daytime}
    |2 late on {weekday}
    | last {weekday}
    | earlier this week
then =
    |2 in {month}
    |2 in {month} {year}
    |3 in {year}
    | after {event}
    | before {event}
whoever =
    |6 {person}
    |4 <person {name}> , {role} ,
    | {office_holder}
# Final clauses, so that sentences differ in length.
tail =
    |6
    |2 , according to {organisation}
    |3 , although {setback}
    |2 , {whoever} said
    | , as {person} had warned/VBN {when}
    | , and {place} is likely to be next
    |2 despite a warning from {organisation}
    | {again}
again =
    |2
    | for the first/JJ time in {number} years/NNS

setback =
    | {folk} had signed a letter/NN against it
    | the details are still unknown/JJ
    | the {gathering} was not over/RP
    | {organisation} had promised/VBN {percent} more
    | {person} had asked for more time
    | the weather in {place} was against them

common* =
    |2 “ {quote} , ” {hero_short} said {when} {again} .
    |2 {hero_short} , who was born in {place} , is a trained {job} .
    |2 {whoever} told reporters {when} that {claim} {tail} .
    |2 {whoever} {adverb} refused to discuss/VB {issue} {when} {tail} .
    |3 {turn_to} {known} {tail} .
    | {known} made/VBD headlines during {event} .
    | {then} , {organisation} and {organisation} had agreed on new rules for {issue} {tail} .
    | the documents were found in {facility} by {person} {tail} .
    | {organisation} will move its headquarters from {place} to {town} {tail} .
    | {person} , {long_role} , said that {claim} .
    | a report by {organisation} is due in {month} {tail} .
    | {person} and {person} were invited to {occasion} {when} .
    |10 {filler}
# The label of what follows depends on the document.
turn_to =
    | there was no comment from
    | much will now depend on
    | few had expected so much of
    | the newspapers were full/JJ of stories/NNS about
    | {adverb} , the talks have turned/VBN to
    | some {folk} had warned/VBN against
known =
    | {hero_short}
    | {home}
# Sentences without entities, despite capitals and digits.
filler* =
    | the {gathering} lasted {number} hours and ended {when} without a {lack} .
    | about {percent} of the {folk} had heard of {issue} before/RB .
    | “ {quote} , ” said one of the {folk} {when} .
    | {number} {folk} waited outside until {weekday} {daytime} , but the {gathering} was closed .
    | a survey in {month} {year} had found little support for {issue} among {adjective} {folk} .
    | the {product} {digit-}00/CD was still on sale in {month} {year} .
    | the {demonym} and {demonym} newspapers called/VBD it a scandal {when} .
    | many {folk} had read/VBN “ The {title_adjective} {title_noun} ” at school .
    | prices rose by {percent} between {month} and {month} , and {issue} remains a question of
        time .
    | on {weekday} {daytime} , most of the {number} {folk} had gone home .
    | further/JJR details of the {gathering} will be published in {month} .
    | a {gathering} on {issue} was called for {weekday} , but only {number} {folk} came .

# ----------------------------------------------------------------------------------------- topics

politics_title =
    | {hero_short} resigns over {issue}
    | {party_short} backs {hero_short}
    | {home} votes on {issue}
politics_opening =
    | {hero} , <role leader of {party}> ( {party_short} ) , said in {home} {when} that {claim} .
    | voters in {home} elected {hero} of {party} ( {party_short} ) as <role mayor> {when} {tail} .
    | {hero} , the candidate of {party} ( {party_short} ) in {home} , met {whoever} {when} .
politics_body =
    | {politics_news}
    | {common}
politics_news* =
    | {party_short} won {percent} of the vote in {place} {tail} .
    | {hero_short} and {person} disagree about {issue} {tail} .
    | {office_holder} criticised {party_short} for its position on {issue} .
    | members of {party_short} in {home} want {organisation} to act on {issue} .
    | before {event} , {hero_short} had worked as <role {head} of {organisation}> .
    | the government of {country} will send {person} to {occasion} {tail} .
    |2 {turn_to} {party_short} {tail} .
    | {hero_short} left {organisation} {then} and joined {party_short} .

business_title =
    | {lead_short} to buy {rival}
    | {lead_short} in talks with {rival}
    | {hero_short} leaves {lead_short}
business_opening =
    | {lead} , based in {home} , could buy {rival} for $ {amount} million , its <role {head}>
        {hero} said {when} .
    | {hero} , <role {head} of {lead}> in {home} , spoke about {rival} {when} {tail} .
    | shares in {lead} fell by {percent} {when} after {hero} , its <role {head}> , had met/VBN
        {person} of {rival} in {home} .
business_body =
    | {business_news}
    | {common}
business_news* =
    | {lead_short} makes the {product} {digit-}00/CD in {place} {tail} .
    |3 {turn_to} {lead_short} {tail} .
    | {rival} and {lead_short} had discussed a merger since {event} .
    | {lead_short} sold its share in {company} for $ {amount} million {tail} .
    | {hero_short} joined {lead_short} from {organisation} {then} .
    | {lead_short} employs {number} {folk} at {facility} {tail} .

sport_title =
    | {our_club_short} beat {opponent} {score}
    | {our_club_short} sign {hero}
    | {hero_short} shines in {place}
opponent =
    | {club}
    | <organisation {town_name}>
sport_opening =
    | {our_club} beat {opponent} {score} in {arena} {when} , with a goal by {hero} .
    | {hero} , <role captain of {our_club}> , will miss {cup} , the club said {when} .
    | {our_club} have signed {hero} from {opponent} for $ {amount} million {tail} .
sport_body =
    |2 {sport_news}
    | {common}
sport_news* =
    | {our_club_short} lost {score} to {opponent} in {arena} {when} {again} .
    | {hero_short} scored after {number} minutes against {opponent} {again} .
    | {our_club_short} will play {opponent} in {arena} next {weekday} .
    |2 {turn_to} {our_club_short} {tail} .
    | {person} , <role coach of {our_club_short}> , praised {hero_short} {when} .
    | the fans travelled to {home} from {place} and {place} {when} .
    | <person {name}> replaced {hero_short} after the break in {arena} .
    | {hero_short} won {cup} with {club} in {year} .

accident_title =
    | {disaster@story} at {site}
    | {site} closed after {disaster@story}
    | {number} hurt/VBN in {home}
accident_opening =
    | {number} {folk} were injured {when} in a {disaster@story} at {site} in {home} , said
        {hero} , {role} .
    | after a {disaster@story} , {hero} , {role} , ordered the closure of {site} in {home} {when} .
    | a {disaster@story} destroyed parts of {site} near {home} {when} , and {hero} of {public_body}
        is leading the investigation .
accident_body =
    | {accident_news}
    | {common}
accident_news* =
    | the injured/JJ were taken to {hospital} {when} {tail} .
    | {site_short} was built by {company} {then} {tail} .
    | firefighters from {town} and {town} reached {site_short} within {number} minutes .
    | {panel} warned that {site_short} was unsafe .
    | {hero_short} compared the damage to {catastrophe} {tail} .
    | {whoever} visited {site_short} {when} {tail} .
    | trains between {home} and {town} were stopped until {weekday} {tail} .
    | the {disaster@story} began/VBD {when} near {facility} {tail} .

culture_title =
    | {museum} shows paintings by {hero}
    | {hero_short} opens <event the {home} {festival} Festival>
    | a prize for {hero}
culture_opening =
    | {museum} is showing {number} paintings by {hero} , who died in {place} in {year} {tail} .
    | {hero} , <role director of {museum}> , presented the programme of {occasion} {when} .
    | the {demonym} writer {hero} read from “ The {title_adjective} {title_noun} ” at {museum}
        {when} {tail} .
culture_body =
    | {culture_news}
    | {common}
culture_news* =
    | {museum_short} bought “ The {title_adjective} {title_noun} ” from {person} {then} .
    | {hero_short} studied {subject} at {university} {then} {tail} .
    | {whoever} lent {number} drawings to {museum_short} {tail} .
    | {hero_short} wrote “ The {title_adjective} {title_noun} ” in {place} {then} .
    | {museum_short} will be renovated by {company} {tail} .
    | the show will travel from {home} to {place} and {place} {tail} .
    | {turn_to} {museum_short} {tail} .
"""

GRAMMAR = ENTITIES + STORIES

# ruff: noqa: E501  (tables)
"""The words of the Village corpus: nouns, adjectives, verbs, places and times."""

from __future__ import annotations

from collections import namedtuple

Noun = namedtuple("Noun", "key en en_pl fr fr_pl gender zh zh_pl cl kinds adjs")
Adj = namedtuple("Adj", "key fr fr_vowel before zh zh_de pred")
Verb = namedtuple(
    "Verb", "key en en_s en_past particle inf forms pp aux refl zh zh_past"
)

# key / plural | French / plural | gender | Chinese / plural | classifier | kinds | adjs
# A dash stands for "not used".
NOUNS = """
baker/- | boulanger/- | m | 面包师/- | 个 | adult prof | old young good
farmer/farmers | fermier/fermiers | m | 农夫/农夫们 | 个 | adult prof | old young
doctor/- | médecin/- | m | 医生/- | 位 | adult prof | old young good new
fisherman/- | pêcheur/- | m | 渔夫/- | 个 | adult prof | old young
postman/- | facteur/- | m | 邮递员/- | 个 | adult prof | young new
shepherd/- | berger/- | m | 牧羊人/- | 个 | adult prof | old young
painter/- | peintre/- | m | 画家/- | 位 | adult prof | old young
carpenter/- | menuisier/- | m | 木匠/- | 个 | adult prof | old young good
gardener/- | jardinier/- | m | 园丁/- | 个 | adult prof | old young good
mayor/- | maire/- | m | 村长/- | 位 | adult prof | old new
teacher/- | institutrice/- | f | 老师/- | 位 | adult prof | young new good
nurse/- | infirmière/- | f | 护士/- | 位 | adult prof | young new good
singer/- | chanteuse/- | f | 歌手/- | 位 | adult prof | young
cook/- | cuisinière/- | f | 厨师/- | 位 | adult prof | good new young
man/- | homme/- | m | 男人/- | 个 | adult plain | old young
woman/women | femme/femmes | f | 女人/女人们 | 个 | adult plain | old young
boy/boys | garçon/garçons | m | 男孩/男孩们 | 个 | child plain | small
girl/girls | fille/filles | f | 女孩/女孩们 | 个 | child plain | small
child/children | enfant/enfants | m | 孩子/孩子们 | 个 | child plain | -
grandmother/- | grand-mère/- | f | 奶奶/- | 位 | adult kin | -
grandfather/- | grand-père/- | m | 爷爷/- | 位 | adult kin | -
mother/- | mère/- | f | 妈妈/- | 位 | adult kin | -
father/- | père/- | m | 爸爸/- | 位 | adult kin | -
sister/sisters | sœur/sœurs | f | 妹妹/妹妹们 | 个 | kid kin | -
brother/- | frère/- | m | 哥哥/- | 个 | kid kin | -
uncle/- | oncle/- | m | 叔叔/- | 位 | adult kin | -
aunt/- | tante/- | f | 姑姑/- | 位 | adult kin | -
daughter/- | fille/- | f | 女儿/- | 个 | kid kin2 | -
son/- | fils/- | m | 儿子/- | 个 | kid kin2 | -
friend/friends | ami/amis | m | 朋友/朋友们 | 个 | adult kin2 | old good new
neighbour/- | voisin/- | m | 邻居/- | 位 | adult kin2 | old new
dog/dogs | chien/chiens | m | 狗/狗 | 只 | animal pet | small big old white black
cat/cats | chat/chats | m | 猫/猫 | 只 | animal pet | small big old white black
horse/horses | cheval/chevaux | m | 马/马 | 匹 | animal farm | old big white black beautiful
cow/cows | vache/vaches | f | 牛/牛 | 头 | animal farm | old white black
goat/goats | chèvre/chèvres | f | 山羊/山羊 | 只 | animal farm | small white black
duck/ducks | canard/canards | m | 鸭子/鸭子 | 只 | animal farm | small white
hen/hens | poule/poules | f | 母鸡/母鸡 | 只 | animal farm | small white black
bird/birds | oiseau/oiseaux | m | 鸟/鸟 | 只 | animal wild | small beautiful red blue yellow
rabbit/rabbits | lapin/lapins | m | 兔子/兔子 | 只 | animal farm | small white black
donkey/- | âne/- | m | 驴/- | 头 | animal farm | old small
mouse/mice | souris/souris | f | 老鼠/老鼠 | 只 | animal wild | small
owl/- | hibou/- | m | 猫头鹰/- | 只 | animal wild | old big
fox/- | renard/- | m | 狐狸/- | 只 | animal wild | old small
fish/- | poisson/- | m | 鱼/- | 条 | foodm | fresh
apple/apples | pomme/pommes | f | 苹果/苹果 | 个 | fruit foodc | red green big small
pear/pears | poire/poires | f | 梨/梨 | 个 | fruit foodc | yellow big small
cherry/cherries | cerise/cerises | f | 樱桃/樱桃 | 颗 | fruit foodc | red black
egg/eggs | œuf/œufs | m | 鸡蛋/鸡蛋 | 个 | foodc | fresh big
cake/cakes | gâteau/gâteaux | m | 蛋糕/蛋糕 | 个 | foodc made | big small
carrot/carrots | carotte/carottes | f | 胡萝卜/胡萝卜 | 根 | foodc veg | fresh big
mushroom/mushrooms | champignon/champignons | m | 蘑菇/蘑菇 | 个 | foodc veg | fresh big
bread/- | pain/- | m | 面包/- | 块 | foodm made | fresh
cheese/- | fromage/- | m | 奶酪/- | 块 | foodm made | fresh
meat/- | viande/- | f | 肉/- | 块 | foodm | fresh
rice/- | riz/- | m | 米饭/- | 碗 | foodm | -
honey/- | miel/- | m | 蜂蜜/- | 瓶 | foodm | -
soup/- | soupe/- | f | 汤/- | 碗 | soup made | hot
water/- | eau/- | f | 水/- | 杯 | drink | cold
milk/- | lait/- | m | 牛奶/- | 杯 | drink | hot cold fresh
tea/- | thé/- | m | 茶/- | 杯 | drink hotdrink | hot
coffee/- | café/- | m | 咖啡/- | 杯 | drink hotdrink | hot
wine/- | vin/- | m | 葡萄酒/- | 杯 | wine | -
book/books | livre/livres | m | 书/书 | 本 | read thing | old new good
letter/letters | lettre/lettres | f | 信/信 | 封 | read mail | long
newspaper/- | journal/- | m | 报纸/- | 份 | read | old
story/stories | histoire/histoires | f | 故事/故事 | 个 | tale | long
music/- | musique/- | f | 音乐/- | - | sound | -
song/songs | chanson/chansons | f | 歌/歌 | 首 | tale2 | old new
painting/paintings | tableau/tableaux | m | 画/画 | 幅 | thing art | beautiful new old
hat/hats | chapeau/chapeaux | m | 帽子/帽子 | 顶 | thing wear | red white black green blue yellow new old
coat/- | manteau/- | m | 大衣/- | 件 | thing wear | red white black green blue new old
dress/dresses | robe/robes | f | 裙子/裙子 | 条 | thing fem | red white black green blue yellow new beautiful
basket/baskets | panier/paniers | m | 篮子/篮子 | 个 | thing box | small big old
key/- | clé/- | f | 钥匙/- | 把 | thing lose | small
umbrella/- | parapluie/- | m | 雨伞/- | 把 | thing lose | red black blue green yellow
chair/chairs | chaise/chaises | f | 椅子/椅子 | 把 | thing wood | old new red white green
table/tables | table/tables | f | 桌子/桌子 | 张 | thing wood | big old white small
bicycle/- | vélo/- | m | 自行车/- | 辆 | thing mech | red blue old new black
boat/boats | bateau/bateaux | m | 船/船 | 条 | thing mech big | small old white blue red new green
cart/- | charrette/- | f | 马车/- | 辆 | thing mech big | old big
violin/- | violon/- | m | 小提琴/- | 把 | thing music | old new
flower/flowers | fleur/fleurs | f | 花/花 | 朵 | plant | red white blue yellow beautiful
tree/trees | arbre/arbres | m | 树/树 | 棵 | plant | big old small beautiful
gift/gifts | cadeau/cadeaux | m | 礼物/礼物 | 份 | thing gift | small big beautiful
door/- | porte/- | f | 门/- | 扇 | part | red white green blue old
window/windows | fenêtre/fenêtres | f | 窗户/窗户 | 扇 | part | small big old
house/houses | maison/maisons | f | 房子/房子 | 座 | build | small big old new beautiful white
box/- | boîte/- | f | 盒子/- | 个 | thing box | small big black old
market/- | marché/- | m | 市场/- | 个 | place | -
school/- | école/- | f | 学校/- | 所 | place build | new old
church/- | église/- | f | 教堂/- | 座 | place build | old small big
garden/- | jardin/- | m | 花园/- | 个 | place | small big beautiful
forest/- | forêt/- | f | 森林/- | 片 | place | -
river/- | rivière/- | f | 河/- | 条 | place | -
lake/- | lac/- | m | 湖/- | 个 | place | -
bridge/- | pont/- | m | 桥/- | 座 | place build | old new small
village/- | village/- | m | 村子/- | 个 | place | -
kitchen/- | cuisine/- | f | 厨房/- | 间 | place | -
farm/- | ferme/- | f | 农场/- | 个 | place | -
field/- | champ/- | m | 田/- | 块 | place | -
bakery/- | boulangerie/- | f | 面包店/- | 家 | place | -
shop/- | magasin/- | m | 商店/- | 家 | place | -
station/- | gare/- | f | 车站/- | 个 | place | -
square/- | place/- | f | 广场/- | 个 | place | -
hill/- | colline/- | f | 小山/- | 座 | place | -
library/- | bibliothèque/- | f | 图书馆/- | 座 | place | -
inn/- | auberge/- | f | 客栈/- | 家 | place | old small
hospital/- | hôpital/- | m | 医院/- | 家 | place | -
barn/- | grange/- | f | 谷仓/- | 座 | place | old big
mill/- | moulin/- | m | 磨坊/- | 座 | place | old
bed/- | lit/- | m | 床/- | 张 | furn | -
moon/- | lune/- | f | 月亮/- | - | sky | -
star/stars | étoile/étoiles | f | 星星/星星 | 颗 | sky | -
mountain/mountains | montagne/montagnes | f | 山/山 | 座 | sky | -
room/- | chambre/- | f | 房间/- | 个 | place | small big
"""

# key | French m.sg f.sg m.pl f.pl | m.sg before a vowel | before the noun? | Chinese
# | 的 needed before a noun? | predicate: 很 or 是 … 的
ADJS = """
small | petit petite petits petites | - | yes | 小 | no | hen
big | grand grande grands grandes | - | yes | 大 | no | hen
old | vieux vieille vieux vieilles | vieil | yes | 老 | no | hen
young | jeune jeune jeunes jeunes | - | yes | 年轻 | yes | hen
beautiful | beau belle beaux belles | bel | yes | 漂亮 | yes | hen
good | bon bonne bons bonnes | - | yes | 好 | no | hen
new | nouveau nouvelle nouveaux nouvelles | nouvel | yes | 新 | no | shi
long | long longue longs longues | - | yes | 长 | no | hen
red | rouge rouge rouges rouges | - | no | 红色 | yes | shi
white | blanc blanche blancs blanches | - | no | 白色 | yes | shi
black | noir noire noirs noires | - | no | 黑色 | yes | shi
green | vert verte verts vertes | - | no | 绿色 | yes | shi
blue | bleu bleue bleus bleues | - | no | 蓝色 | yes | shi
yellow | jaune jaune jaunes jaunes | - | no | 黄色 | yes | shi
fresh | frais fraîche frais fraîches | - | no | 新鲜 | yes | hen
hot | chaud chaude - - | - | no | 热 | no | hen
cold | froid froide - - | - | no | 冷 | no | hen
sweet | sucré sucrée sucrés sucrées | - | no | 甜 | no | hen
heavy | lourd lourde lourds lourdes | - | no | 重 | no | hen
empty | vide vide vides vides | - | no | 空 | no | shi
expensive | cher chère chers chères | - | no | 贵 | no | hen
tired | fatigué fatiguée fatigués fatiguées | - | no | 累 | no | hen
happy | heureux heureuse heureux heureuses | - | no | 高兴 | yes | hen
sad | triste triste tristes tristes | - | no | 难过 | yes | hen
busy | occupé occupée occupés occupées | - | no | 忙 | no | hen
kind | gentil gentille gentils gentilles | - | no | 善良 | yes | hen
rich | riche riche riches riches | - | no | 有钱 | yes | hen
poor | pauvre pauvre pauvres pauvres | - | no | 穷 | no | hen
famous | célèbre célèbre célèbres célèbres | - | no | 有名 | yes | hen
strong | fort forte forts fortes | - | no | 强壮 | yes | hen
angry | fâché fâchée fâchés fâchées | - | no | 生气 | yes | hen
"""

# French: "avoir faim". Chinese: a predicate adjective.
AVOIR_ADJS = {
    "hungry": ("faim", "饿"),
    "thirsty": ("soif", "渴"),
    "cold": ("froid", "冷"),
}

# key | English base, 3rd person, past | particle | infinitive | je tu il nous ils
# | participle | auxiliary (a/e, r = reflexive) | Chinese | Chinese past
# A dash among the forms: not used with that person in the present.
VERBS = """
eat | eat eats ate | - | manger | mange manges mange mangeons mangent | mangé | a | 吃 | 吃 了
drink | drink drinks drank | - | boire | bois bois boit buvons boivent | bu | a | 喝 | 喝 了
buy | buy buys bought | - | acheter | achète - achète - achètent | acheté | a | 买 | 买 了
sell | sell sells sold | - | vendre | - - vend - vendent | vendu | a | 卖 | 卖 了
read | read reads read | - | lire | lis lis lit lisons lisent | lu | a | 读 | 读 了
write | write writes wrote | - | écrire | - - écrit - écrivent | écrit | a | 写 | 写 了
give | give gives gave | - | donner | donne - donne - donnent | donné | a | 给 | 给 了
send | send sends sent | - | envoyer | envoie - envoie - envoient | envoyé | a | 寄 | 寄 了
tell | tell tells told | - | raconter | raconte - raconte - racontent | raconté | a | 讲 | 讲 了
bring | bring brings brought | - | apporter | apporte - apporte - apportent | apporté | a | 带来 | 带来 了
see | see sees saw | - | voir | vois - voit - voient | vu | a | 看见 | 看见 了
watch | look looks looked | at | regarder | regarde - regarde - regardent | regardé | a | 看 | -
listen | listen listens listened | to | écouter | écoute - écoute - écoutent | écouté | a | 听 | 听 了
love | love loves loved | - | aimer | aime aimes aime aimons aiment | aimé | a | 爱 | -
like | like likes liked | - | aimer | aime aimes aime aimons aiment | aimé | a | 喜欢 | -
prefer | prefer prefers preferred | - | préférer | préfère - préfère - préfèrent | préféré | a | 更喜欢 | -
know | know knows knew | - | connaître | connais connais connaît connaissons connaissent | connu | a | 认识 | -
help | help helps helped | - | aider | aide - aide - aident | aidé | a | 帮助 | 帮助 了
wait | wait waits waited | for | attendre | attends - attend - attendent | attendu | a | 等 | -
meet | meet meets met | - | rencontrer | rencontre - rencontre - rencontrent | rencontré | a | 遇见 | 遇见 了
thank | thank thanks thanked | - | remercier | remercie - remercie - remercient | remercié | a | 感谢 | 感谢 了
open | open opens opened | - | ouvrir | ouvre - ouvre - ouvrent | ouvert | a | 打开 | 打开 了
close | close closes closed | - | fermer | ferme - ferme - ferment | fermé | a | 关上 | 关上 了
clean | clean cleans cleaned | - | nettoyer | nettoie - nettoie - nettoient | nettoyé | a | 打扫 | 打扫 了
wash | wash washes washed | - | laver | lave - lave - lavent | lavé | a | 洗 | 洗 了
make | make makes made | - | faire | - - fait - font | fait | a | 做 | 做 了
pick | pick picks picked | - | cueillir | cueille - cueille - cueillent | cueilli | a | 摘 | 摘 了
paint | paint paints painted | - | peindre | - - peint - peignent | peint | a | 画 | 画 了
repair | repair repairs repaired | - | réparer | répare - répare - réparent | réparé | a | 修理 | 修理 了
plant | plant plants planted | - | planter | plante - plante - plantent | planté | a | 种 | 种 了
feed | feed feeds fed | - | nourrir | - - nourrit - nourrissent | nourri | a | 喂 | 喂 了
lookfor | look looks looked | for | chercher | cherche - cherche - cherchent | cherché | a | 找 | -
find | find finds found | - | trouver | trouve - trouve - trouvent | trouvé | a | 找到 | 找到 了
take | take takes took | - | prendre | - - prend - prennent | pris | a | 拿 | 拿 了
play | play plays played | - | jouer | joue - joue - jouent | joué | a | 玩 | 玩 了
playmusic | play plays played | - | jouer | joue - joue - jouent | joué | a | 拉 | 拉 了
walk | walk walks walked | - | promener | promène - promène - promènent | promené | r | 散步 | 走 了
swim | swim swims swam | - | nager | nage - nage - nagent | nagé | a | 游泳 | 游 了
work | work works worked | - | travailler | travaille - travaille - travaillent | travaillé | a | 工作 | 工作 了
rest | rest rests rested | - | reposer | repose - repose - reposent | reposé | r | 休息 | 休息 了
sleep | sleep sleeps slept | - | dormir | - - dort - dorment | dormi | a | 睡觉 | 睡 了
sing | sing sings sang | - | chanter | chante - chante - chantent | chanté | a | 唱歌 | 唱 了
singsong | sing sings sang | - | chanter | chante - chante - chantent | chanté | a | 唱 | 唱 了
dance | dance dances danced | - | danser | danse - danse - dansent | dansé | a | 跳舞 | 跳 了
laugh | laugh laughs laughed | - | rire | - - rit - rient | ri | a | 大笑 | 笑 了
cry | cry cries cried | - | pleurer | pleure - pleure - pleurent | pleuré | a | 哭 | 哭 了
run | run runs ran | - | courir | - - court - courent | couru | a | 跑 | -
go | go goes went | - | aller | vais vas va allons vont | allé | e | 去 | 去 了
comeback | come comes came | back | revenir | - - revient - reviennent | revenu | e | 回来 | 回来 了
stay | stay stays stayed | - | rester | reste - reste - restent | resté | e | 待 | -
arrive | arrive arrives arrived | - | arriver | arrive - arrive - arrivent | arrivé | e | 到 | 到 了
leave | leave leaves left | - | quitter | quitte - quitte - quittent | quitté | a | 离开 | 离开 了
live | live lives lived | - | habiter | habite - habite - habitent | habité | a | 住 | -
chase | chase chases chased | - | poursuivre | - - poursuit - poursuivent | poursuivi | a | 追 | -
have | have has had | - | avoir | ai as a avons ont | eu | a | 有 | -
"""

# heads of an infinitive: English forms (base, 3rd person), "to"?, French, Chinese
MODALS = {
    "want": ("want", "wants", True, "veux veux veut voulons veulent", "想"),
    "can": ("can", "can", False, "peux peux peut pouvons peuvent", "能"),
    "must": ("must", "must", False, "dois dois doit devons doivent", "必须"),
    "love": ("love", "loves", True, "aime aimes aime aimons aiment", "爱"),
    "will": ("will", "will", False, "vais vas va allons vont", "会"),
}

# place -> English/French/Chinese preposition kinds it goes with
# "河边": the Chinese for "near the river" and for "to the river"
RIVERSIDE = {"river": "河边", "lake": "湖边"}

# preposition -> English, French, Chinese before, Chinese after
PREPS = {
    "in": ("in", "dans", "在", "里"),
    "on": ("on", "sur", "在", "上"),
    "at": ("at", "à", "在", ""),
    "near": ("near", "près de", "在", "附近"),
    "behind": ("behind", "derrière", "在", "后面"),
    "front": ("in front of", "devant", "在", "前面"),
    "under": ("under", "sous", "在", "下面"),
}

# time -> aligned patterns; /n names the concept, no number: no counterpart
TIMES = {
    "pres": [
        ("every/1 day/2", "chaque/1 jour/2", "每天/12"),
        ("every/1 morning/2", "chaque/1 matin/2", "每天/1 早上/2"),
        ("every/1 evening/2", "chaque/1 soir/2", "每天/1 晚上/2"),
        ("every/1 sunday/2", "chaque/1 dimanche/2", "每/1 个/1 星期天/2"),
        ("in/1 winter/2", "en/1 hiver/2", "冬天/2"),
        ("in/1 summer/2", "en/1 été/2", "夏天/2"),
        ("in/1 spring/2", "au/1 printemps/2", "春天/2"),
        ("in/1 autumn/2", "en/1 automne/2", "秋天/2"),
        ("at/1 noon/2", "à/1 midi/2", "中午/2"),
    ],
    "past": [
        ("yesterday/1", "hier/1", "昨天/1"),
        ("yesterday/1 morning/2", "hier/1 matin/2", "昨天/1 早上/2"),
        ("yesterday/1 evening/2", "hier/1 soir/2", "昨天/1 晚上/2"),
        ("last/1 week/2", "la semaine/2 dernière/1", "上星期/12"),
        ("last/1 year/2", "l' année/2 dernière/1", "去年/12"),
        ("this/1 morning/2", "ce/1 matin/2", "今天/1 早上/2"),
        ("last/1 sunday/2", "dimanche/2 dernier/1", "上星期天/12"),
    ],
    "fut": [
        ("tomorrow/1", "demain/1", "明天/1"),
        ("tomorrow/1 morning/2", "demain/1 matin/2", "明天/1 早上/2"),
        ("tomorrow/1 evening/2", "demain/1 soir/2", "明天/1 晚上/2"),
        ("next/1 week/2", "la semaine/2 prochaine/1", "下星期/12"),
        ("next/1 year/2", "l' année/2 prochaine/1", "明年/12"),
        ("this/1 evening/2", "ce/1 soir/2", "今天/1 晚上/2"),
        ("next/1 sunday/2", "dimanche/2 prochain/1", "下星期天/12"),
    ],
}

NUMBERS = {
    "two": ("deux", "两"),
    "three": ("trois", "三"),
    "four": ("quatre", "四"),
    "five": ("cinq", "五"),
    "ten": ("dix", "十"),
}

# vessel: English, French, gender, Chinese, the nouns it measures
MEASURES = [
    ("cup", "tasse", "f", "杯", ["tea", "coffee"]),
    ("glass", "verre", "m", "杯", ["water", "milk", "wine"]),
    ("piece", "morceau", "m", "块", ["bread", "cheese", "meat", "cake"]),
    ("bowl", "bol", "m", "碗", ["soup", "rice"]),
    (
        "basket",
        "panier",
        "m",
        "篮",
        ["apple", "pear", "cherry", "mushroom", "egg", "carrot"],
    ),
    (
        "kilo",
        "kilo",
        "m",
        "公斤",
        ["apple", "pear", "cherry", "carrot", "meat", "cheese"],
    ),
]

# French forms that would be too rare to learn: a draft with one of them is dropped.
TOO_RARE = frozenset(
    """
    achetés aidée aidées aidés apportent arrivée arrivées arrivés attendent attends
    avais avions bleus chers courent célèbres envoient envoyée fortes forts fâchées
    fâchés gentilles gentils jeunes lourd lourds peignent pleurer poursuivent
    promenées promenés quittent rencontrées rencontrés reposés restées restés
    réparée sucrés trouvés verts vides voient vois écrite étais étions
    """.split()
)

# (adjective, noun) pairs kept for the test split
HELD_OUT = [
    ("red", "door"),
    ("white", "horse"),
    ("green", "hat"),
    ("blue", "boat"),
    ("yellow", "flower"),
    ("old", "bridge"),
    ("small", "duck"),
    ("big", "tree"),
    ("new", "chair"),
    ("beautiful", "garden"),
    ("young", "fisherman"),
    ("black", "dog"),
    ("good", "doctor"),
    ("fresh", "egg"),
    ("hot", "milk"),
    ("white", "dress"),
]


def _rows(table: str):
    for line in table.strip().splitlines():
        yield [field.strip() for field in line.split("|")]


def _nouns():
    out = {}
    for en, fr, gender, zh, cl, kinds, adjs in _rows(NOUNS):
        (en, en_pl), (fr, fr_pl), (zh, zh_pl) = (
            [None if f == "-" else f for f in x.split("/")] for x in (en, fr, zh)
        )
        adjs = [] if adjs == "-" else adjs.split()
        out[en] = Noun(
            en,
            en,
            en_pl,
            fr,
            fr_pl,
            gender,
            zh,
            zh_pl,
            cl,
            frozenset(kinds.split()),
            adjs,
        )
    return out


def _adjs():
    out = {}
    for key, fr, vowel, before, zh, de, pred in _rows(ADJS):
        vowel = None if vowel == "-" else vowel
        out[key] = Adj(key, fr.split(), vowel, before == "yes", zh, de == "yes", pred)
    return out


def _verbs():
    out = {}
    for key, en, part, inf, forms, pp, aux, zh, zh_past in _rows(VERBS):
        base, s, past = en.split()
        forms = [None if f == "-" else f for f in forms.split()]
        out[key] = Verb(
            key,
            base,
            s,
            past,
            None if part == "-" else part,
            inf,
            forms,
            pp,
            "a" if aux == "a" else "e",
            aux == "r",
            zh,
            None if zh_past == "-" else zh_past,
        )
    return out


NOUN = _nouns()
ADJ = _adjs()
VERB = _verbs()


def nouns(*kinds: str) -> list[str]:
    """Keys of the nouns that have at least one of `kinds`, in table order."""
    return [k for k, n in NOUN.items() if n.kinds.intersection(kinds)]

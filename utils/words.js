// The words that the explorer and a drawing show, and their Chinese. {0} is a value. A
// sentence that another follows ends with a space, where Chinese has none.
export const CHINESE = {
  // the explorer
  "English sentence ": "英语句子 ",
  "into ": "译成 ",
  "or pick ": "或者选一句 ",
  "French": "法语",
  "Chinese": "中文",
  "another word ": "换一个词 ",
  "write": "写这个词",
  "undo all": "全部撤销",
  "next word": "下一个词",
  "Heatmap": "热力图",
  "Choose a row to see its step. Press an English word to erase it: the model reads \
<unk> in its place.": "选中一行，查看这一步。点击一个英语词就抹去它：模型在它的位置上读到 <unk>。",
  "The model is being loaded …": "正在加载模型……",
  "The model can't be used: {0}.": "模型用不了：{0}。",
  "The sentence has {0} words and signs; at most {1} have room here.":
    "这个句子有 {0} 个词和标点，这里最多放得下 {1} 个。",
  "Type an English sentence.": "请输入一个英语句子。",
  "The model can't write {0}: it isn't among its words.":
    "模型写不出{0}：它的词表里没有这个词。",
  "The model doesn't know {0} and reads <unk>. ": "模型不认识{0}，读成 <unk>。",
  "The nearest that it knows: ": "它认识的词里，拼写最接近的是：",
  "erase {0}": "抹去 {0}",
  " (forced)": "（强迫）",
  "Attention weights: a row for each word that is written, a column for each word that \
is read.": "注意力权重：写出的每个词一行，读入的每个词一列。",
  "scores, step {0}": "评分，第 {0} 步",
  "Step {0} of {1} writes {2}. The largest weight, {3}, is on {4}. The most probable \
words, to press:":
    "第 {0} 步（共 {1} 步）写出{2}。最大的权重是 {3}，落在{4}上。概率最大的词如下，可以点击：",
  "Left alone, the model writes {0} ": "不干预时，模型写{0}。",
  "Other words: {0}. ": "换了的词：第 {0} 个。",
  "No other word. ": "写出的词没有变。",
  "The first row with other weights: {0}. ": "权重从第 {0} 行起不同。",
  "The weights are the same. ": "权重没有变。",
  "Frames mark the true links, dotted ones possible links: {0} of {1} rows look most \
at one.": "实线框是确定的连线，虚线框是可能的连线：{1} 行里有 {0} 行看得最多的词在框里。",
  // a drawing
  "Drag across the columns to draw your curve, or use Tab and the arrow keys.":
    "横着拖过各列，画出你的曲线；也可以用 Tab 键和方向键。",
  "Drag each bar up, or use Tab and the arrow keys. The bars share out 1.":
    "把每根柱子往上拖；也可以用 Tab 键和方向键。各柱之和是 1。",
  "Choose in each row the square that you expect to be darkest: press it, drag down \
the rows, or use Tab, Space and the arrow keys.":
    "在每一行里选出你认为颜色最深的格子：点击它，或者往下拖过各行；也可以用 Tab 键、空格键和方向键。",
  "show what was measured": "看看实测结果",
  "draw again": "重画",
  "fill the screen": "全屏",
  "{0} is left to share out.": "还剩 {0} 没有分。",
  "{0} of {1} are drawn.": "{1} 处中画了 {0} 处。",
  "All is drawn.": "都画好了。",
  "not drawn": "还没画",
  "your guess": "你的猜测",
  "measured": "实测",
  "The darkest square is right in {0} of {1} rows.": "{1} 行中有 {0} 行猜对了最深的格子。",
  " The others: {0}.": "其余各行：{0}。",
  "On average, your curve is {0} BLEU away. ": "你的曲线平均差 {0} BLEU。",
  "The differences add up to {0}. ": "各处的差加起来是 {0}。",
  "{0}: you {1}, measured {2}": "{0}：你画的是 {1}，实测是 {2}",
  "; ": "；",
  ".": "。",
  // what the notebooks' drawings show
  "BLEU, by source words": "BLEU，按源句的词数",
  "Weight of each word": "每个词的权重",
  "The weight of each word": "每个词的权重",
  "Your heatmap": "你的热力图",
  "measured, mean of 2 models": "实测，2 个模型的平均",
};

// What says a text in the language of the element where it is shown.
export function speaker(root) {
  const own = root.closest("[lang]")?.lang.startsWith("zh") ? CHINESE : {};
  return (text, ...values) =>
    (own[text] ?? text).replace(/\{(\d)\}/g, (_, k) => values[k]);
}

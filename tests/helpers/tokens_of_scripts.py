"""Captions in many scripts, by what the PTB tokeniser makes of them."""

UNREAD = {  # one word, or nearly
    "Chinese": "一只狗在草地上奔跑。",
    "Chinese, two parts": "一个男人站在海边，望着远方",
    "Chinese, short": "一只狗",
    "Chinese and Latin": "一只dog在跑",
    "Japanese": "犬が草の上を走っている。",
    "Katakana": "スケートボードに乗る男",
    "Thai": "สุนัขวิ่งบนหญ้า",
    "Lao": "ໝາແລ່ນຢູ່ເທິງຫຍ້າ",
}
READ = {
    "English": "A dog runs on the grass.",
    "German": "Ein Hund läuft über das Gras, größer als Bäume.",
    "French": "Un chien court à l'école près d'un garçon élevé.",
    "Vietnamese": "Một con chó đang chạy trên cỏ",
    "Russian": "Собака бежит по траве.",
    "Greek": "Ένας σκύλος τρέχει",
    "Arabic": "كلب يجري على العشب.",
    "Hebrew": "כלב רץ על הדשא",
    "Hindi": "एक कुत्ता घास पर दौड़ रहा है",
    "Korean": "개가 잔디 위를 달린다.",
    "Chinese, split": "一 只 狗 在 草地 上 奔跑",
    "Japanese, split": "犬 が 草 の 上 を 走って いる",
    "Thai, split": "สุนัข วิ่ง บน หญ้า",
    "English and Chinese": "a dog 狗 runs 在草地上",
    "English and emoji": "🐕 dog runs",
    "one character": "狗",
    "signs": "★ ☆",
}
WITHOUT_LETTERS = {"emoji": "🐕🏃🌿", "marks": "...", "bold letters": "𝐀 𝐝𝐨𝐠 𝐫𝐮𝐧𝐬"}

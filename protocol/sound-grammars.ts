/** For tests. */
/** Grammars that llama.cpp reads. */
export const soundGrammars: Readonly<Record<string, string>> = {
  choice: 'root ::= "yes" | "no"',
  list: 'root ::= item+\nitem ::= "- " [^\\n]+ "\\n"',
  arithmetic: `root  ::= (expr "=" ws term "\\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \\t\\n]*`,
  json: `# any JSON object
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\\"" (
    [^"\\\\\\x7F\\x00-\\x1F] |
    "\\\\" (["\\\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\\n" [ \\t]{0,20}`,
  unicode: 'root ::= [ぁ-ゟ一-龥\\u00e9]{2,} "é\\U0001F642" .',
  empty: 'root ::= "" | optional\noptional ::= "a"?',
};

" Vim syntax for .weft files. Copy to ~/.vim/syntax/weft.vim, and say in
" ~/.vim/ftdetect/weft.vim:  autocmd BufRead,BufNewFile *.weft setfiletype weft
if exists("b:current_syntax")
  finish
endif

syntax keyword weftStatement model plan train weights use for
syntax keyword weftDeclare input param let def layer branch output loss init
syntax keyword weftConditional if else and or not is mod
syntax keyword weftType int float
syntax keyword weftConstant full
syntax keyword weftPlan drop windows freeze prune at of on from match
syntax keyword weftTable sizes expect prefix tied ignore
syntax keyword weftFunction exp log sqrt tanh sigmoid silu gelu gelu_tanh relu
syntax keyword weftFunction layer_norm rms_norm softmax rope attend dropout cross_entropy
syntax match weftNumber "\<\d\+\(\.\d\+\)\?\([eE][-+]\?\d\+\)\?\>%\?"
syntax match weftOperator "\*\*\|<->\|\.\.\|==\|+=\|[-+*/@=<>|]"
syntax region weftString start=+"+ skip=+\\.+ end=+"+ oneline
syntax match weftComment "#.*$"

highlight default link weftStatement Keyword
highlight default link weftDeclare Keyword
highlight default link weftConditional Conditional
highlight default link weftType Type
highlight default link weftConstant Constant
highlight default link weftPlan Keyword
highlight default link weftTable Keyword
highlight default link weftFunction Function
highlight default link weftNumber Number
highlight default link weftOperator Operator
highlight default link weftString String
highlight default link weftComment Comment

setlocal commentstring=#\ %s
let b:current_syntax = "weft"

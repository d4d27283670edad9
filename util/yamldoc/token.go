package yamldoc

import "github.com/goccy/go-yaml/token"

// tok is a token with its own place and content.
type tok struct {
	kind tokKind
	pos  Pos
	end  int    // line on which it ends
	text string // of a scalar: unquoted; of an anchor, alias or tag: with its first character
	body string // of a block scalar: its raw lines
	// adjoins: of a colon, that no white space follows it.
	adjoins bool
	props   properties // of a value: what stands before it
}

// tokKind is what the library calls a token, with fewer differences.
type tokKind = token.Type

const (
	tokEnd       = token.UnknownType
	tokPlain     = token.StringType // a scalar without quotes
	tokQuoted    = token.DoubleQuoteType
	tokBlock     = token.LiteralType // a block scalar; text is its header
	tokColon     = token.MappingValueType
	tokQuestion  = token.MappingKeyType
	tokDash      = token.SequenceEntryType
	tokComma     = token.CollectEntryType
	tokOpenSeq   = token.SequenceStartType
	tokCloseSeq  = token.SequenceEndType
	tokOpenMap   = token.MappingStartType
	tokCloseMap  = token.MappingEndType
	tokAnchor    = token.AnchorType
	tokAlias     = token.AliasType
	tokTag       = token.TagType
	tokMerge     = token.MergeKeyType
	tokDocStart  = token.DocumentHeaderType
	tokDocEnd    = token.DocumentEndType
	tokDirective = token.DirectiveType
	tokMissing   = token.ImplicitNullType // a value that is not there
)

// opens, closes, property, complete and endsDocument are what matters to a
// token's neighbours: complete that a value ends with it.
func (t tok) opens() bool    { return t.kind == tokOpenSeq || t.kind == tokOpenMap }
func (t tok) closes() bool   { return t.kind == tokCloseSeq || t.kind == tokCloseMap }
func (t tok) property() bool { return t.kind == tokAnchor || t.kind == tokTag }
func (t tok) words() bool    { return t.kind == tokPlain || t.kind == tokQuoted }
func (t tok) complete() bool {
	return t.words() || t.kind == tokBlock || t.kind == tokAlias || t.closes()
}
func (t tok) endsDocument() bool {
	return t.kind == tokEnd || t.kind == tokDocStart || t.kind == tokDocEnd || t.kind == tokDirective
}

// atKey reports whether a scalar with its colon is at i.
func atKey(toks []tok, i int, flow bool) bool {
	t := toks[i]
	if !t.words() && t.kind != tokAlias && t.kind != tokMerge {
		return false
	}
	colon := toks[i+1] // there is one: a scalar is not the end
	return colon.kind == tokColon && (flow || colon.pos.Line == t.end)
}

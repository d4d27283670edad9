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
}

type tokKind int

const (
	tokEnd    tokKind = iota
	tokPlain          // a scalar without quotes
	tokQuoted         // a scalar in quotes
	tokBlock          // a block scalar; text is its header
	tokColon
	tokQuestion
	tokDash
	tokComma
	tokOpenSeq
	tokCloseSeq
	tokOpenMap
	tokCloseMap
	tokAnchor
	tokAlias
	tokTag
	tokMerge
	tokDocStart
	tokDocEnd
	tokDirective
)

// indicators maps the tokens of the library that are one fixed character.
func indicators(t token.Type) (tokKind, bool) {
	switch t {
	case token.MappingValueType:
		return tokColon, true
	case token.MappingKeyType:
		return tokQuestion, true
	case token.SequenceEntryType:
		return tokDash, true
	case token.CollectEntryType:
		return tokComma, true
	case token.SequenceStartType:
		return tokOpenSeq, true
	case token.SequenceEndType:
		return tokCloseSeq, true
	case token.MappingStartType:
		return tokOpenMap, true
	case token.MappingEndType:
		return tokCloseMap, true
	}
	return tokEnd, false
}

package yamldoc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// structure lets the library's parser find out what belongs to what; nil is an
// empty document. The parser gets tokens without their text, because it keeps
// the path of keys to every node. A token's offset is its index.
func structure(toks []tok) (root ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("not YAML that can be read (%v)", p)}
		}
	}()
	file, err := parser.Parse(theirs(toks), 0, parser.AllowDuplicateMapKey())
	var at yaml.Error
	switch {
	case errors.As(err, &at):
		return nil, misplaced(toks, at.GetToken().Position.Offset)
	case err != nil:
		return nil, &Error{Pos: Pos{1, 1}, Message: "not YAML that can be read"}
	case len(file.Docs) == 0:
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

// theirs are the tokens as the library's parser gets them. It needs quadratic
// time for the keys of a mapping, so each key outside of brackets comes as the
// only one of an entry of a list: a dash more before it, in a column between
// that of the key and the one before.
func theirs(toks []tok) token.Tokens {
	all := make(token.Tokens, 0, len(toks)*3/2)
	depth, line := 0, 0
	add := func(kind token.Type, column, offset int) {
		if depth > 0 || toks[offset].kind == tokMissing { // its place means nothing, but for the parser
			column = 1<<30 + offset
		}
		position := &token.Position{Line: line, Column: column, Offset: offset}
		all = append(all, &token.Token{Type: kind, Value: "x", Origin: "x", Position: position})
	}
	for i, t := range toks[:len(toks)-1] {
		kind, column := t.kind, 4*t.pos.Column+1
		if depth == 0 {
			line = t.pos.Line
		}
		switch {
		case t.closes():
			depth--
		case t.kind == tokDash:
			column++ // a list may stand in the column of its key
		case depth == 0 && (t.kind == tokQuestion || (i == 0 || toks[i-1].kind != tokQuestion) && atKey(toks, i, false)):
			add(tokDash, column-1, i)
		}
		if t.complete() && !t.closes() || t.kind == tokMissing {
			kind = token.StringType
		}
		add(kind, column, i)
		if t.opens() {
			depth++
		}
	}
	return all
}

// misplaced says what may be wrong with a token that the library has no place
// for: the rest is checked, so it can only be its indentation.
func misplaced(toks []tok, i int) error {
	switch t := toks[i]; {
	case t.kind == tokDash:
		return failAt(t, "a list entry where a key is expected; check the indentation")
	case t.kind == tokQuestion || atKey(toks, i, false):
		return failAt(t, fmt.Sprintf("this begins in column %d, but the entries before it in column %s", t.pos.Column, columns(toks, i)))
	case t.words():
		return failAt(t, "a ':' is missing after this key, or the text belongs to the value before it and must be indented")
	default:
		return failAt(t, "this belongs to nothing before it; check the indentation and the quotes")
	}
}

// columns are those of the entries that may go on before the token at i.
func columns(toks []tok, i int) string {
	var all []string
	least, brackets := 1<<30, 0
	for i--; i >= 0; i-- {
		switch t := toks[i]; {
		case t.closes():
			brackets++
		case t.opens():
			brackets--
		case brackets == 0 && t.pos.Column < least && (t.kind == tokDash || atKey(toks, i, false)):
			least = t.pos.Column
			all = append(all, fmt.Sprint(least))
		}
	}
	slices.Reverse(all)
	return strings.Join(all, " or ")
}

package extract

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
)

// candidate is a block of an answer with what it is as the role's output.
type candidate struct {
	frontmatter.Block
	out     Output
	err     error // an *InvalidError, or nil: it is the role's output
	relates bool  // it has a field that the role's output has
}

// candidates holds every block of a text against the schema.
func (r Role) candidates(ctx context.Context, text string) ([]candidate, error) {
	known := knownBy(r.Schema)
	var all []candidate
	for _, b := range frontmatter.Blocks(text) {
		c := candidate{Block: b, relates: b.Mentions(func(field string) bool { return field == protocol.StatusKey || known.has(field) })}
		if b.Err != nil {
			c.err = &InvalidError{Reason: "the frontmatter block is not valid YAML: " + b.Err.Error()}
		} else {
			c.out, c.err = r.accept(ctx, b.Fields)
			c.out.Body = b.Body
		}
		if _, invalid := errors.AsType[*InvalidError](c.err); c.err != nil && !invalid {
			return nil, c.err
		}
		all = append(all, c)
	}
	return all, nil
}

// choose finds the block that counts. An answer begins with it; what stands below it is the body,
// whatever it quotes. Behind other words it is the last one that is the role's output. If another
// block could be the answer too and says something else, the answer goes back.
func choose(text string, all []candidate) (Output, error) {
	chosen := -1
	for i, c := range all {
		if c.First && !c.Fenced && c.relates {
			chosen = i
			break
		}
		if c.relates && c.err == nil {
			chosen = i
		}
	}
	if chosen < 0 && len(all) > 0 && all[0].First {
		chosen = 0
	}
	if chosen < 0 {
		return Output{}, &InvalidError{Reason: noBlock(text)}
	}
	c := all[chosen]
	for _, other := range all {
		if c.err == nil && other.Line != c.Line && c.contradicts(other) {
			return Output{}, &InvalidError{Reason: fmt.Sprintf("the answer has two frontmatter blocks that differ, in lines %d and %d: "+
				"give one, and put what you quote in a code fence", min(c.Line, other.Line), max(c.Line, other.Line))}
		}
	}
	return c.out, c.err
}

// contradicts reports whether another block may be the answer in the place of the chosen one. One
// that is not the role's output may be so only where neither begins the text, and if it is no text
// between two rules.
func (c candidate) contradicts(other candidate) bool {
	switch {
	case !other.relates:
		return false
	case other.err == nil:
		return !reflect.DeepEqual(c.out.Value, other.out.Value)
	}
	apart := other.End < c.Line || c.End < other.Line
	return apart && !other.Fenced && (!c.First || c.Fenced)
}

// noBlock says how an answer must begin.
func noBlock(text string) string {
	msg := "the answer has no frontmatter block: its very first line must be ---, then come lines 'field: value', then a line --- again"
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && strings.TrimSpace(line) == "---" {
			return msg + fmt.Sprintf("; there is a line --- in line %d, but nothing may stand before it", i+1)
		}
	}
	return msg
}

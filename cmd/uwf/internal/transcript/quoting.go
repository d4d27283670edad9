package transcript

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Quoting separates the text of an agent from the document around it. Without it the text could
// pose as another step or turn.
type Quoting bool

const (
	// ForPeople makes such a text a quotation of Markdown.
	ForPeople Quoting = false
	// ForModels puts it between tags that it cannot contain.
	ForModels Quoting = true
)

// document is a text between tags of a name. It may have headings.
func (q Quoting) document(name fence.Name, text string) string {
	if q == ForModels {
		return fence.Body(name, text)
	}
	if ends := "</" + string(name); strings.Contains(strings.ReplaceAll(strings.ToLower(text), " ", ""), ends) {
		text = quotation(text)
	}
	return fmt.Sprintf("<%s>\n%s\n</%s>", name, text, name)
}

// said is the text of a turn, which has no tags around it.
func (q Quoting) said(text string) string {
	if q == ForModels {
		return fence.Said(text)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") {
			return quotation(text)
		}
	}
	return text
}

// refused is why an answer was refused, which quotes the answer.
func (q Quoting) refused(r protocol.Refused) string {
	text := plaintext.Line(r.String())
	if q == ForModels {
		return fence.Word(fence.AnswerProblem, text, text)
	}
	return text
}

func quotation(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

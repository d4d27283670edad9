package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// OmittedTurns is said when not all turns fit.
const OmittedTurns = "\n\n_[Earlier turns omitted due to quota. Use --quota to increase.]_"

// TurnBlock is one turn; a turn that says and does nothing is left out.
func (q Quoting) TurnBlock(t protocol.Turn) string {
	if strings.TrimSpace(t.Content) == "" && len(t.ToolCalls) == 0 {
		return ""
	}
	if r := t.Refused; r != nil {
		return fmt.Sprintf("\n\n## Turn %d\n\n**uwf:** %s", t.Index+1, q.refused(*r))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n## Turn %d\n\n**Turn role:** %s", t.Index+1, plaintext.Line(string(t.Role)))
	for _, call := range t.ToolCalls {
		fmt.Fprintf(&b, "\n- **%s** — `%s`", plaintext.Line(call.Name), arguments(call.Args))
	}
	if t.Content != "" {
		b.WriteString("\n\n")
		b.WriteString(q.said(t.Content))
	}
	return b.String()
}

// arguments returns the arguments of a tool call as JSON. The original stores them as a text that is JSON.
func arguments(args any) string {
	if text, ok := args.(string); ok && json.Valid([]byte(text)) {
		return plaintext.Line(text)
	}
	text, err := json.Marshal(args)
	if err != nil { // it came from the store, so it is JSON
		return "?"
	}
	return string(text)
}

// JoinReversed is the text of blocks that were collected from the newest on.
func JoinReversed(blocks []string) string {
	var b strings.Builder
	for i := len(blocks) - 1; i >= 0; i-- {
		b.WriteString(blocks[i])
	}
	return b.String()
}

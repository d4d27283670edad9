package builtin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/utilagent/react"
)

// system is the beginning of every conversation of a role. It holds nothing
// that changes from turn to turn or from thread to thread, so that a provider's
// prompt cache can hit.
func (w *work) system() string {
	who := fmt.Sprintf("## How You Work Here\n\nYou play the role %q of the workflow %q. What you have to do is in the messages: do not use the uwf command to find it out.\n\n",
		w.req.Role, w.req.Workflow.Name)
	block := ", with `---` as its first line"
	if w.plain() {
		block = ""
	}
	switch {
	case !w.kind.tools:
		return w.req.System + "\n\n" + who + "You have no tools. Answer at once, in the format above" + block + "."
	case w.kind.resolves:
		return w.req.System + "\n\n" + who + fmt.Sprintf(yourTools, strings.Join(names(w.tools), ", ")) + "\n\n" + react.HowToResolve
	}
	return w.req.System + "\n\n" + who + fmt.Sprintf(yourTools, strings.Join(names(w.tools), ", ")) + "\n" + fmt.Sprintf(endWithText, block)
}

// plain reports whether the role's answer is a text, which may begin as it likes.
func (w *work) plain() bool { return protocol.IsAnswerSchema(w.req.Schema) }

const yourTools = "- Your tools: %s. Paths are relative to the working directory and cannot leave it."

const endWithText = "- Call tools until the work is done. A message without a tool call ends your turn: make it your final answer, in the format above%s.\n" +
	"- If the work cannot be done, or you are told that few replies are left, give the final answer and say in it what is missing."

// acceptable says why a text is not a final answer.
func acceptable(text string) error {
	blocks := frontmatter.Blocks(text)
	if len(blocks) == 0 {
		return errors.New("it does not begin with a frontmatter block (a first line `---`, the fields, a line `---`)")
	}
	if slices.ContainsFunc(blocks, func(b frontmatter.Block) bool { return b.Err == nil }) {
		return nil
	}
	return blocks[0].Err
}

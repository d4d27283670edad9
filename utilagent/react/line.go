package react

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// line is a line of a session file: a message, or what was left out of those
// before it, or the mark behind what a step began with. The messages themselves
// stay in the file.
type line struct {
	llm.Message
	AtMs  int64           `json:"atMs,omitempty"`  // when it was said
	Usage *protocol.Usage `json:"usage,omitempty"` // of the reply
	Room  *room           `json:"room,omitempty"`
	Begun bool            `json:"begun,omitempty"`
}

const begunLine = `{"begun":true}` + "\n"

func encodeLine(l line) ([]byte, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(b, '\n'), nil
}

// read takes the lines of a file and returns how many bytes of it make sense.
func (s *Session) read(file []byte) (good int) {
	begun := false
	for b := range bytes.Lines(file) {
		var l line
		if !bytes.HasSuffix(b, []byte("\n")) || json.Unmarshal(b, &l) != nil {
			break
		}
		switch {
		case l.Begun:
			begun, s.Unfinished, s.Spent = true, nil, protocol.Bill{}
		case l.Room != nil:
			messages, ok := l.Room.apply(s.Messages)
			if !ok {
				return good
			}
			s.Messages = messages
			if turn, ok := l.summaryTurn(); ok && begun {
				s.Unfinished = append(s.Unfinished, turn)
				l.cost(&s.Spent)
			}
		default:
			s.Messages = append(s.Messages, l.Message)
			if begun {
				s.Unfinished = append(s.Unfinished, l.turn())
				if l.Role == protocol.TurnAssistant {
					l.cost(&s.Spent)
				}
			}
		}
		good += len(b)
	}
	return good
}

// turn is a message as a turn.
func (l line) turn() protocol.Turn {
	t := protocol.Turn{
		Role: l.Role, Content: l.Content, Reasoning: l.Reasoning, ToolCallID: l.ToolCallID, AtMs: l.AtMs,
	}
	if l.Usage != nil {
		t.Usage = l.Usage.IfKnown()
	}
	for _, call := range l.ToolCalls {
		t.ToolCalls = append(t.ToolCalls, protocol.ToolCall{ID: call.ID, Name: call.Name, Args: recordedArgs(call)})
	}
	return t
}

// summaryTurn is the summary as the model is told it, with what it cost; ok is false
// where there is none.
func (l line) summaryTurn() (t protocol.Turn, ok bool) {
	if l.Room == nil || l.Room.Summary == "" {
		return t, false
	}
	l.Message = l.Room.stand()
	return l.turn(), true
}

// cost adds what a reply cost.
func (l line) cost(b *protocol.Bill) {
	if l.Usage == nil {
		b.Add(nil)
		return
	}
	b.Add(l.Usage.IfKnown())
}

// recordedArgs are a call's arguments as data, or as the model's text if they
// are none.
func recordedArgs(call llm.ToolCall) any {
	args, err := llm.ParseArgs(call.Args)
	if err != nil {
		return call.Args
	}
	return args
}

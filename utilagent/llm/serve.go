package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// Serve reads a request of package modelcall, sends it, and prints the reply.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r modelcall.Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("invalid request on stdin: %w", err)
	}
	reply, err := answer(ctx, r)
	if err != nil {
		reply.Error = &modelcall.Error{Text: err.Error(), Machine: protocol.OfMachine(err)}
	}
	return json.NewEncoder(out).Encode(reply)
}

func answer(ctx context.Context, r modelcall.Request) (reply modelcall.Reply, err error) {
	switch r.Verb {
	case modelcall.List:
		r.Endpoint.Model = "" // not needed
		reply.Models, err = New(r.Endpoint, Options{}).Models(ctx)
	case modelcall.Probe:
		r.Endpoint.Stream = false
		_, err = New(r.Endpoint, Options{Once: true}).Complete(ctx, Request{
			Messages: []Message{User("Answer with the word yes.")},
		})
	case modelcall.Extract:
		reply.Text, reply.Usage, err = extracted(ctx, r.Endpoint, r.System, r.User)
	default:
		err = errors.New("unknown request " + string(r.Verb))
	}
	return reply, err
}

// extracted asks a model for one JSON object and returns its text. The prompt must contain the schema: most endpoints accept
// one nowhere else, and the answer is not validated here.
func extracted(ctx context.Context, e config.Endpoint, system, user string) (string, protocol.Usage, error) {
	if !strings.Contains(system+user, "JSON") {
		system += "\n\nAnswer with one JSON object." // endpoints in JSON mode require the word
	}
	resp, err := New(e, Options{}).Complete(ctx, Request{
		Messages: []Message{System(strings.TrimSpace(system)), User(user)}, JSON: true,
	})
	if err != nil {
		return "", spent(resp), err
	}
	if resp.Finish == FinishRefusal {
		return "", spent(resp), fmt.Errorf("model %q refused: %s", e.Model, resp.Message.Content)
	}
	return unfence(strings.TrimSpace(resp.Message.Content)), spent(resp), nil
}

// spent returns the cost of a request.
func spent(r Response) protocol.Usage {
	b := r.Bill()
	if u := b.Usage(); u != nil {
		return *u
	}
	return protocol.Usage{Turns: b.Parts} // the cost is unknown
}

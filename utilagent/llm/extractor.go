package llm

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// Extractor asks a model for one JSON object and returns its text. It has the type of runenv.Run.Extractor.
// The prompt must contain the schema: most endpoints accept one nowhere else, and the answer is not validated
// here.
func Extractor(ctx context.Context, e config.Endpoint, system, user string, _ any) (string, protocol.Usage, error) {
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

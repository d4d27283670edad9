package llm

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// Extractor asks a model for one JSON object that satisfies a schema and
// returns the object's text. It fits agentkit.Options.Extractor. The answer is
// not validated here.
func Extractor(ctx context.Context, e config.Endpoint, system, user string, schema any) (string, protocol.Usage, error) {
	text, err := marshal(schema)
	if err != nil {
		return "", protocol.Usage{}, fmt.Errorf("encode schema: %w", err)
	}
	// Endpoints in JSON mode want the word JSON in the prompt, and most ignore a
	// schema anywhere else.
	system += "\n\nAnswer with one JSON object and nothing else. It must satisfy this JSON Schema:\n" + string(text)
	resp, err := New(e, Options{}).Complete(ctx, Request{
		Messages: []Message{System(strings.TrimSpace(system)), User(user)}, JSON: true,
	})
	if err != nil {
		return "", protocol.Usage{}, err
	}
	if resp.Finish == FinishRefusal {
		return "", resp.Usage, fmt.Errorf("model %q refused: %s", e.Model, resp.Message.Content)
	}
	return unfence(strings.TrimSpace(resp.Message.Content)), resp.Usage, nil
}

package agentkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// uwfJudge is the judge of an agent: the program that keeps the data. The schema
// library would make each agent's start twice as long, and is needed only for an
// output that is wrong or has a rare schema.
func uwfJudge(e env.Env) jsonschema.Judge {
	return func(schema any) (jsonschema.Verdict, error) {
		text, err := json.Marshal(schema)
		if err != nil {
			return nil, err
		}
		return (&question{env: e, schema: text}).verdict, nil
	}
}

// question asks about values of one schema. It remembers the last answer: a value
// is looked at when it is extracted, and again when it is stored.
type question struct {
	env    env.Env
	schema []byte

	mu       sync.Mutex
	value    []byte
	problems []jsonschema.Problem
}

func (q *question) verdict(ctx context.Context, value any) ([]jsonschema.Problem, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.value == nil || !bytes.Equal(text, q.value) {
		problems, err := q.ask(ctx, text)
		if err != nil {
			return nil, err
		}
		q.value, q.problems = text, problems
	}
	return append([]jsonschema.Problem(nil), q.problems...), nil
}

// ask runs uwf for one value.
func (q *question) ask(ctx context.Context, value []byte) ([]jsonschema.Problem, error) {
	asked, err := askUwf(ctx, q.env, io.MultiReader(bytes.NewReader(q.schema), strings.NewReader("\n"), bytes.NewReader(value)),
		"cas", "schema", "validate", "-", "-")
	if err != nil {
		return nil, noJudge(asked.program, err)
	}
	problems, ok := readVerdict(asked.stdout)
	if !ok {
		return nil, noJudge(asked.program, asked.failure("it gives no verdict"))
	}
	return problems, nil
}

// readVerdict reads what uwf prints. Its exit status says no more.
func readVerdict(printed []byte) (problems []jsonschema.Problem, ok bool) {
	var answer struct {
		Valid    *bool                `json:"valid"`
		Problems []jsonschema.Problem `json:"problems"`
	}
	if err := json.Unmarshal(printed, &answer); err != nil || answer.Valid == nil {
		return nil, false
	}
	return answer.Problems, *answer.Valid == (len(answer.Problems) == 0)
}

// noJudge says why nobody knows whether an output is right, and what to do.
func noJudge(program string, err error) error {
	return fmt.Errorf("the output needs %s to be judged by its schema: %w\n"+
		"hint: set %s to the path of uwf, of the same version as the agent, or put it on PATH", program, err, protocol.EnvBin)
}

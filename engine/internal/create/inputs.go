package create

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
)

// Inputs are those of a run of a workflow, checked and complete.
func (m Maker) Inputs(ctx context.Context, w protocol.Workflow, given map[string]any) (map[string]any, error) {
	declared, err := Declared(ctx, m.Nodes(), w)
	if err != nil {
		return nil, err
	}
	return inputs.Fill(ctx, declared, given)
}

// Declared are the inputs of a stored workflow.
func Declared(ctx context.Context, r cas.Reader, w protocol.Workflow) (map[string]inputs.Declared, error) {
	declared := map[string]inputs.Declared{}
	for name, i := range w.Inputs {
		schema, err := cas.Schema(ctx, r, i.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of input %q: %w", name, err)
		}
		declared[name] = inputs.Declared{Schema: schema, Default: i.Default, Description: i.Description}
	}
	return declared, nil
}

// InputsText is what agents are told of a thread's inputs.
func InputsText(s protocol.Start) string {
	if len(s.Inputs) == 0 {
		return "{}"
	}
	text, err := json.Marshal(s.Inputs)
	if err != nil { // it was read from a node
		return "{}"
	}
	return string(text)
}

// Runnable refuses a workflow with features that this program can store but not run: ignoring
// them would be running a different workflow.
func Runnable(w protocol.Workflow) error {
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		for _, field := range []struct {
			said bool
			name string
		}{
			{w.Roles[name].Workspace != "" && w.Roles[name].Workspace != protocol.InWorktree, "workspace"},
			{w.Roles[name].Memo, "memo"}, {len(w.Roles[name].Tools) > 0, "tools"},
		} {
			if field.said {
				return fault.New(protocol.CodeInvalid, "role %q of workflow %q has %q, which this uwf cannot do yet", name,
					w.Name, field.name)
			}
		}
	}
	return nil
}

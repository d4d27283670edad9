package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// overrides looks whether what the config says of roles is said of any: a slip there has
// no other sign than that somebody else plays. Only registered workflows are known.
func (x *examination) overrides(ctx context.Context) {
	if x.config == nil {
		return
	}
	for _, workflow := range slices.Sorted(maps.Keys(x.config.AgentOverrides)) {
		for _, role := range slices.Sorted(maps.Keys(x.config.AgentOverrides[workflow])) {
			x.override(ctx, "agentOverrides", workflow, role)
		}
	}
	for _, scenario := range slices.Sorted(maps.Keys(x.config.ModelOverrides)) {
		if at := strings.LastIndexByte(scenario, '.'); at > 0 {
			x.override(ctx, "modelOverrides", scenario[:at], scenario[at+1:])
		}
	}
}

func (x *examination) override(ctx context.Context, section, workflow, role string) {
	h, err := x.index.Workflow(ctx, workflow)
	if errors.Is(err, heads.ErrNoWorkflow) {
		names, _ := x.index.Workflows(ctx) // what is wrong there is said elsewhere
		var known []string
		for _, n := range names {
			known = append(known, n.Name)
		}
		if near := suggest.Nearest(workflow, known, 1); len(near) > 0 {
			x.warn("config", "did you mean "+near[0]+"? uwf config unset "+plaintext.Word(section+"."+workflow), "%s names workflow %q, which is not registered", section, workflow)
		}
		return
	}
	if err != nil {
		return
	}
	s, err := fsstore.Open(ctx, x.Dirs.Store, fsstore.Options{Home: x.Dirs.Home})
	if err != nil {
		return // the store's own findings say why
	}
	w, err := cas.Read[protocol.Workflow](ctx, s, h)
	if _, known := w.Roles[role]; err != nil || known {
		return
	}
	do := "uwf config unset " + plaintext.Word(section+"."+workflow+"."+role)
	if near := suggest.Nearest(role, slices.Collect(maps.Keys(w.Roles)), 1); len(near) > 0 {
		do = "did you mean " + near[0] + "? " + do
	}
	x.warn("config", do, "%s names role %q, which workflow %s does not have", section, role, workflow)
}

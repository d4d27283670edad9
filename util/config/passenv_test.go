package config_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
)

// Grants by name and by hash are separate, because only the hash identifies the role.
func TestGranted(t *testing.T) {
	t.Parallel()
	const h = protocol.Hash("0123456789ABC")
	c := protocol.Config{Commands: &protocol.CommandsConfig{PassEnv: map[string][]string{
		"release": {"A"}, "release.publish": {"A", "B"}, string(h) + ".publish": {"B", "C"}, "other": {"D"}, string(h): {"E"},
	}}}
	proven, named := config.Granted(c, h, "release", "publish")
	require.Equal(t, []string{"B", "C"}, proven)
	require.Equal(t, []string{"A"}, named)
	proven, named = config.Granted(c, h, "release", "build")
	require.Empty(t, proven)
	require.Equal(t, []string{"A"}, named)
	proven, named = config.Granted(protocol.Config{}, h, "release", "publish")
	require.Empty(t, slices.Concat(proven, named))
	w := protocol.Workflow{Name: "release", Roles: map[string]protocol.Role{"publish": {Run: []string{"x"}}, "build": {Script: "x"}, "agent": {}}}
	e := env.Env{Environ: []string{"A=1", "B=2"}}
	require.Equal(t, []string{"build: gets A", "publish: C is not set", "publish: gets B, A"}, config.Gets(c, h, w, &e))
	require.Equal(t, []string{"build: gets A", "publish: gets B, C, A"}, config.Gets(c, h, w, nil))
}

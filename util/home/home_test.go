package home_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
)

// at returns a path below a root that is absolute on every system.
func at(t *testing.T, parts ...string) string {
	t.Helper()
	root, err := filepath.Abs(string(filepath.Separator))
	require.NoError(t, err)
	return filepath.Join(append([]string{root}, parts...)...)
}

func TestFind(t *testing.T) {
	t.Parallel()
	user := at(t, "home", "ann")
	userEnv := []string{"HOME=" + user, "USERPROFILE=" + user}
	tests := map[string]struct {
		environ               []string
		homeFlag, storeFlag   string
		wantHome, wantInStore string
	}{
		"nothing set": {wantHome: at(t, "home", "ann", ".uwf")},
		"flag wins over all": {
			homeFlag: at(t, "flag"), environ: []string{"UWF_HOME=" + at(t, "a")},
			wantHome: at(t, "flag"),
		},
		"UWF_HOME before the older names": {
			environ:  []string{"WORKFLOW_STORAGE_ROOT=" + at(t, "d"), "UWF_STORAGE_ROOT=" + at(t, "b"), "UWF_HOME=" + at(t, "a")},
			wantHome: at(t, "a"),
		},
		"UWF_STORAGE_ROOT second": {
			environ:  []string{"UNCAGED_WORKFLOW_STORAGE_ROOT=" + at(t, "c"), "UWF_STORAGE_ROOT=" + at(t, "b")},
			wantHome: at(t, "b"),
		},
		"UNCAGED_WORKFLOW_STORAGE_ROOT third": {
			environ:  []string{"WORKFLOW_STORAGE_ROOT=" + at(t, "d"), "UNCAGED_WORKFLOW_STORAGE_ROOT=" + at(t, "c")},
			wantHome: at(t, "c"),
		},
		"WORKFLOW_STORAGE_ROOT last": {
			environ:  []string{"WORKFLOW_STORAGE_ROOT=" + at(t, "d")},
			wantHome: at(t, "d"),
		},
		"empty counts as unset": {
			environ:  []string{"UWF_HOME=", "UWF_STORAGE_ROOT=" + at(t, "b"), "OCAS_HOME="},
			wantHome: at(t, "b"),
		},
		"relative to the directory": {
			homeFlag: "sub/../here", storeFlag: "store",
			wantHome: at(t, "work", "here"), wantInStore: at(t, "work", "store"),
		},
		"tilde that no shell expanded": {
			environ:  []string{"UWF_HOME=~/flows", "OCAS_HOME=~"},
			wantHome: at(t, "home", "ann", "flows"), wantInStore: at(t, "home", "ann"),
		},
		"a name that begins with a tilde": {
			homeFlag: "~bob", wantHome: at(t, "work", "~bob"),
		},
		"store apart from home": {
			environ:  []string{"OCAS_HOME=" + at(t, "shared")},
			wantHome: at(t, "home", "ann", ".uwf"), wantInStore: at(t, "shared"),
		},
		"store flag wins": {
			environ: []string{"OCAS_HOME=" + at(t, "shared")}, storeFlag: at(t, "mine"),
			wantHome: at(t, "home", "ann", ".uwf"), wantInStore: at(t, "mine"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := env.Env{Environ: append(userEnv[:2:2], tt.environ...), Dir: at(t, "work")}
			got, err := home.Find(e, tt.homeFlag, tt.storeFlag)
			require.NoError(t, err)
			require.Equal(t, tt.wantHome, got.Home)
			if tt.wantInStore == "" {
				tt.wantInStore = filepath.Join(tt.wantHome, "cas")
			}
			require.Equal(t, tt.wantInStore, got.Store)
		})
	}
}

func TestFindWithoutUser(t *testing.T) {
	t.Parallel()
	_, err := home.Find(env.Env{Dir: at(t, "work")}, "", "")
	require.ErrorIs(t, err, home.ErrUnknown)
	require.ErrorContains(t, err, "UWF_HOME")

	got, err := home.Find(env.Env{Dir: at(t, "work")}, at(t, "h"), "")
	require.NoError(t, err, "the user's directory is not needed when a home is named")
	require.Equal(t, at(t, "h"), got.Home)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	d := home.Dirs{Home: at(t, "h")}
	require.Equal(t, at(t, "h", "config.yaml"), d.Config())
	require.Equal(t, at(t, "h", ".env"), d.DotEnv())
	require.Equal(t, at(t, "h", "locks"), d.Locks())
	require.Equal(t, at(t, "h", "runs", "01ABC"), d.Run("01ABC"))
	require.Equal(t, at(t, "h", "sessions"), d.Sessions())
	require.Equal(t, at(t, "h", "logs"), d.Logs())
}

// Only a directory in the home itself is accepted as the artifacts directory.
func TestOwnArtifacts(t *testing.T) {
	t.Parallel()
	d := home.Dirs{Home: at(t, "home", "ann", ".uwf")}
	own := d.Artifacts("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	require.Equal(t, own, d.OwnArtifacts(own))
	for _, other := range []string{"", at(t), at(t, "etc"), d.Home, filepath.Dir(own), filepath.Join(own, "x"), own + "/", own + "/../x", filepath.Dir(own) + "/.."} {
		require.Empty(t, d.OwnArtifacts(other), other)
	}
	require.Empty(t, home.Dirs{}.OwnArtifacts("artifacts/x"))
}

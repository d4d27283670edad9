package box

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gocache"
	"github.com/united-workforce/uwf/util/proc/plan"
)

// warmTime is how long a new build cache is filled from the user's. After that the go command uses its cache alone,
// which is faster, and removes what is old from it.
const warmTime = time.Hour

// warm lets the go command take what is missing in a new build cache from the user's. A cache is as old as the writable
// directory that contains it, which a command can't replace.
func (b *builder) warm(r Request, box string) {
	inside, user := env.Env{Environ: b.plan.Env}, env.Env{Environ: r.Environ}
	caches := cmp.Or(user.Get("XDG_CACHE_HOME"), filepath.Join(r.Home, ".cache"))
	own, users := inside.Get("GOCACHE"), cmp.Or(user.Get("GOCACHE"), filepath.Join(caches, "go-build"))
	if own == "" || inside.Get("GOCACHEPROG") != "" || anyBelow(r.Off.Denied(), users) ||
		!isReal(filepath.Join(users, "00")) || strings.ContainsAny(box+users, " \t\n'\"") || below(users, r.Home) {
		return // "00" is in every cache of the go command
	}
	for path, m := range b.mounts {
		if m.Kind == plan.Write && (below(path, users) || below(users, path)) {
			return // it must stay writable
		}
	}
	set := slices.IndexFunc(r.Writable, func(dir string) bool { return below(dir, own) })
	if set < 0 || r.Now.Sub(bornAt(r.Writable[set])) > warmTime {
		return
	}
	b.add(plan.Mount{Path: users, Kind: plan.Show, Missing: true})
	b.find(box)
	b.plan.Env = append(b.plan.Env, "GOCACHEPROG="+box+" "+gocache.Argument+" "+users)
}

package main

// mutants are the mistakes that must be caught.
func mutants() []mutant {
	points := func(match string) []string { return []string{"-only", "points", "-all", "-match", match} }
	only := func(row string) []string { return []string{"-only", row} }
	return []mutant{
		{
			"a file that names others is written in place, not replaced", "util/durable/write.go",
			"	temp, err := fsys.WriteTemp(path, data, perm, FullFlush)\n",
			"	if _, err := os.Stat(path); err == nil {\n		_ = os.Truncate(path, 0)\n		return fsys.Append(path, data, perm, FullFlush)\n	}\n	temp, err := fsys.WriteTemp(path, data, perm, FullFlush)\n",
			points("thread step: kill"),
		},
		{
			"the result of an interrupted step is not adopted", "engine/attempt.go",
			"	if !o.Fresh {\n		if out, adopted,", "	if false {\n		if out, adopted,",
			only("kills"),
		},
		{
			"a run directory that is a link is followed", "engine/rundir.go",
			"	case err == nil && info.IsDir():\n		return nil\n", "	case err == nil && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0):\n		return nil\n",
			[]string{"-only", "liars", "-match", "in the place of its run directory"},
		},
		{
			"an error of the disk is taken for success when the head moves", "engine/advance.go",
			"a.Heads.Move(ctx, a.hold.id, a.hold.head, got.hash); err != nil {", "a.Heads.Move(ctx, a.hold.id, a.hold.head, got.hash); err != nil && ctx.Err() != nil {",
			points("thread step: E"),
		},
		{
			"a thread that ends leaves threads.yaml before it is in the history", "cas/heads/fileheads/threads.go",
			"		f.remove(e.Thread)\n		return x.appendHistory(ctx, e)\n",
			"		f.remove(e.Thread)\n		if err := x.save(f); err != nil {\n			return err\n		}\n		return x.appendHistory(ctx, e)\n",
			points("thread kill: kill"),
		},
		{
			"threads.yaml is changed without its lock", "cas/heads/fileheads/threads.go",
			"return x.locked(ctx, threadsLock, func() error {", "return func(change func() error) error { return change() }(func() error {",
			only("races"),
		},
		{
			"a head moves without looking where it was, and a step without the thread's lock", "engine/lock.go",
			"lock, err := e.locks().Lock(brief, id)", "lock, err := e.locks().Lock(brief, id+time.Now().String())",
			only("races"),
		},
		{
			"a step of another thread is accepted", "engine/accept.go",
			"case s.Start != t.StartHash:", "case false:",
			only("liars"),
		},
		{
			"a step that follows another head is accepted", "engine/accept.go",
			"case prev != wantPrev:", "case false:",
			only("liars"),
		},
		{
			"what an agent leaves behind is not ended", "util/proc/group_unix.go",
			"	if g.gone() {\n		return nil\n	}\n	if err := g.kill()", "	if g.gone() || true {\n		return nil\n	}\n	if err := g.kill()",
			only("liars"),
		},
		{
			"a torn last line of the history is left where it is", "cas/heads/fileheads/tail.go",
			"return nil, x.fsys.Truncate(x.path(file), line.offset)", "return nil, nil",
			points("thread kill: "),
		},
		{
			"a node is written in place", "util/durable/writeall.go",
			"temp, err := fsys.WriteTemp(f.Path, f.Data, f.Perm, flush)", "temp, err := f.Path, fsys.Append(f.Path, f.Data, f.Perm, flush)",
			points("thread step: "),
		},
		{
			"the record of a run is written after its agent has begun", "engine/invoke.go",
			"	if err := a.dir.write(a.record); err != nil {\n		return nil, errors.Join(err, lock.Unlock())\n	}\n", "",
			points("thread step: kill"),
		},
		{
			"what a model says is kept as it is", "utilagent/react/clean.go",
			"	if r.Redact == nil {", "	if true {",
			only("secrets"),
		},
		{
			"a step is committed without a flush", "step/submit.go",
			"b.Commit(ctx)", "b.Put(ctx)",
			only("power"),
		},
		{
			"the head is not flushed", "util/durable/write.go",
			"temp, err := fsys.WriteTemp(path, data, perm, FullFlush)", "temp, err := fsys.WriteTemp(path, data, perm, NoFlush)",
			only("power"),
		},
		{
			"the directory of the head is not flushed", "util/durable/write.go",
			"		return errors.Join(err, fsys.Remove(temp))\n	}\n	return fsys.SyncDir(filepath.Dir(path))\n", "		return errors.Join(err, fsys.Remove(temp))\n	}\n	return nil\n",
			only("power"),
		},
		{
			"the history is not flushed", "util/durable/write.go",
			"return fsys.Append(path, data, perm, FullFlush)", "return fsys.Append(path, data, perm, NoFlush)",
			only("power"),
		},
		{
			"the directories of nodes are not flushed", "cas/fsstore/put.go",
			"	if mode == durable.Full && s.format.Layout == fan2 {", "	if false {",
			[]string{"-only", "power", "-match", "full"},
		},
		{
			"a directory of nodes counts as durable before it is", "cas/fsstore/put.go",
			"		if _, err := os.Lstat(mark); err != nil && !slices", "		if _, err := os.Lstat(filepath.Dir(mark)); err != nil && !slices",
			[]string{"-only", "power", "-match", "full"},
		},
		{
			"a location leads out of the thread's directory", "engine/place/place.go",
			"	case !below(thread, dir):\n", "	case false && !below(thread, dir):\n",
			only("repositories"),
		},
		{
			"a workflow of another user counts (as root only)", "util/project/project.go",
			"case !f.search.counts(info):", "case false:",
			only("repositories"),
		},
		{
			"a model may write .git and .workflow", "utilagent/tools/workspace.go",
			"return w.off.Write(w.real,", "return w.off.Read(w.real,",
			only("repositories"),
		},
		{
			"a terminal gets a stranger's bytes", "util/terminal/terminal.go",
			"	out, w.rest = plaintext.Append(nil, append(w.rest, text...))\n", "	out = append(w.rest, text...)\n	w.rest = nil\n",
			only("terminals"),
		},
		{
			"a redaction from elsewhere stays", "cas/fsstore/put.go",
			"return !redacted.Tombstone.Foreign, nil", "return true, nil",
			only("outsiders"),
		},
		{
			"a bundle brings an id of the future", "cas/bundle/plan.go",
			"if err != nil || at.After(", "if err != nil && at.After(",
			only("outsiders"),
		},
		{
			"a bundle brings any name", "protocol/workflowname.go",
			"case !isPlainName(name):", "case false && !isPlainName(name):",
			only("outsiders"),
		},
		{
			"a thread from elsewhere works where it says", "engine/foreign.go",
			"			return e.mustSayWhere(ctx, h, facts, w.Do)\n", "			return nil\n",
			only("outsiders"),
		},
		{
			"an agent is found in the workspace", "util/proc/lookpath.go",
			"if err == nil && work != \"\" &&", "if false && work != \"\" &&",
			only("planted"),
		},
		{
			"the answer of a role is not fenced", "util/fence/fence.go",
			"if !Forges(text) {", "if true || !Forges(text) {",
			only("forged"),
		},
	}
}

# Every workflow file that there was: of examples, docs, tests, and the shared vectors.
# SOURCES is the tree of the commit, VECTORS the shared vectors.
python3 - "$SOURCES" "$VECTORS" <<'EOF'
import glob, json, os, re, sys
sources, vectors = sys.argv[1:]
files = {}
def is_workflow(text): return re.search(r"(?m)^roles:", text) and re.search(r"(?m)^graph:", text)
for path in glob.glob(sources + "/examples/*.yaml") + glob.glob(sources + "/cmd/uwf/testdata/cookbook/*.yaml"):
    files["examples/" + os.path.basename(path)] = open(path).read()
for path in glob.glob(sources + "/**/testdata/**/*.txtar", recursive=True):
    parts = re.split(r"(?m)^-- (.*) --\n", open(path).read())
    for name, text in zip(parts[1::2], parts[2::2]):
        if is_workflow(text) and name.endswith(".yaml"):
            files["tests/%s/%s" % (os.path.basename(path)[:-6], name)] = text
for path in glob.glob(sources + "/docs/*.md") + glob.glob(sources + "/cmd/*/README.md") + [sources + "/README.md"]:
    for text in re.findall(r"(?s)```yaml\n(.*?)```", open(path).read()):
        name = re.search(r"(?m)^name: ([\w-]+)$", text)
        if is_workflow(text) and name:
            files["docs/%s/%s.yaml" % (os.path.basename(path)[:-3], name[1])] = text
for i, case in enumerate(json.load(open(vectors + "/workflow-hash.json"))):
    name = re.search(r"(?m)^name: ['\"]?([\w-]+)", case["yaml"])
    if name:
        files["original/%02d/%s.yaml" % (i, name[1])] = case["yaml"]
for kind in ["semantic", "shape"]:
    for i, case in enumerate(json.load(open(vectors + "/workflow-%s.json" % kind))):
        value = case.get("payload", case.get("raw"))
        if isinstance(value, dict):
            files["vectors/%s-%03d/%s.yaml" % (kind, i, value.get("name", "w"))] = json.dumps(value)
# A test's workflow that is like another's adds nothing.
seen = {}
for name, text in sorted(files.items()):
    if text in seen or "/" in os.path.basename(name): continue
    seen[text] = name
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, "w").write(text)
EOF
for template in loop review solve-issue debate checks approve panel each research; do
	mkdir -p "templates"
	uwf --quiet workflow new "$template" --template "$template" -o templates >/dev/null
done
{
	echo '# Written by workflows.sh.'
	find . -name '*.yaml' -printf '%P\n' | LC_ALL=C sort | sed 's/.*/uwf workflow put & --json/'
	find . -name '*.yaml' -printf '%h\n' | LC_ALL=C sort -u | sed 's/^..//' | while read -r dir; do
		echo "uwf workflow validate $(find "$dir" -maxdepth 1 -name '*.yaml' | LC_ALL=C sort | tr '\n' ' ')--json"
	done
	find examples templates docs -name '*.yaml' | LC_ALL=C sort | while read -r file; do
		echo "uwf workflow graph $file --format json"
		echo "uwf workflow graph $file --format mermaid"
		echo "uwf workflow show $file --format yaml"
		echo "uwf run $file -p x --workspace none --dry-run --json"
	done
	echo "uwf workflow list --json"
	echo "uwf cas list --type workflow --json"
	echo "env OCAS_HOME=\$WORK/original"
	echo "uwf cas init --hash xxh64 --json"
	find examples original -name '*.yaml' | LC_ALL=C sort | sed 's/.*/uwf workflow put & --json/'
	echo "uwf cas fsck --json"
	for kind in text suspend turn turn.2 detail detail.2 workflow workflow.2 start start.2 step step.2; do
		echo "uwf schema hash $kind --json"
		echo "uwf schema show $kind --json"
	done
	echo "env OCAS_HOME="
	for kind in text suspend turn turn.2 detail detail.2 workflow workflow.2 start start.2 step step.2; do
		echo "uwf schema hash $kind --json"
	done
} >"$here/stories/workflows"

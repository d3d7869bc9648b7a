// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var evidence = Evidence{Document: "https://example.org/isolation", Date: "2026-12-01"}

// fullOffer is of a backend that can do nearly everything.
func fullOffer() Offer {
	return Offer{
		Backend: "full", Capabilities: RunCommand | Streaming | NetworkPolicies | Tunnels | GPU,
		Tiers: []TierOffer{
			{Tier: TierContainer, Runtime: "runc"}, {Tier: TierMicroVM, Runtime: "kata", Evidence: evidence}, {Tier: TierGVisor, Runtime: "runsc", Evidence: evidence},
		},
		MinCPU: 0.01, MaxCPU: 4, MinMemoryMB: 6, MaxMemoryMB: 8192,
		EgressEnforcement: map[Egress]string{EgressDeny: "no network", EgressAllow: "bridge"},
		Enforcement:       Enforcement{CPU: "cgroup", Memory: "cgroup", Disk: "quota", Pids: "cgroup"},
		InPlace:           []string{"resources.cpu"},
	}
}

func TestDefaultsAreModestAndConcrete(t *testing.T) {
	t.Parallel()
	got, err := Admit(Spec{}, fullOffer())
	want := Resources{CPU: Some(1.0), MemoryMB: Some(int64(1024)), DiskMB: Some(int64(10240))}
	if err != nil || got.Resources != want || got.Network != (NetworkPolicy{Egress: EgressDeny}) || got.Tier.Tier != TierContainer {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Enforcement != (Enforcement{CPU: "cgroup", Memory: "cgroup", Disk: "quota", Pids: "cgroup", Egress: "no network"}) {
		t.Errorf("%+v", got.Enforcement)
	}
	small := fullOffer()
	small.MaxCPU, small.MaxMemoryMB, small.DiskRefusal = 0.5, 512, "no quota"
	got, err = Admit(Spec{}, small)
	if err != nil || got.Resources != (Resources{CPU: Some(0.5), MemoryMB: Some(int64(512))}) || got.Enforcement.Disk != EnforcementNone {
		t.Errorf("on a small machine: %+v, %v", got, err)
	}
	big := fullOffer()
	big.MinCPU, big.MinMemoryMB = 2, 2048
	if got, err = Admit(Spec{}, big); err != nil || got.Resources.CPU != Some(2.0) || got.Resources.MemoryMB != Some(int64(2048)) {
		t.Errorf("where everything is big: %+v, %v", got, err)
	}
}

func TestWhatIsAskedForIsInEffect(t *testing.T) {
	t.Parallel()
	want := Resources{CPU: Some(0.5), MemoryMB: Some(int64(64)), DiskMB: Some(int64(100)), GPU: Some("T4")}
	got, err := Admit(Spec{Resources: want, Network: NetworkPolicy{Egress: EgressAllow, IngressPorts: TupleOf(80)}}, fullOffer())
	if err != nil || got.Resources != want || got.Network != (NetworkPolicy{Egress: EgressAllow, IngressPorts: TupleOf(80)}) || got.Enforcement.Egress != "bridge" {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Capabilities != fullOffer().Capabilities || !slices.Equal(got.InPlace, fullOffer().InPlace) {
		t.Errorf("%+v", got)
	}
}

// An adapter whose author says nothing has claimed nothing.
func TestWhoDeclaresNoTierHasUnknown(t *testing.T) {
	t.Parallel()
	offer := fullOffer()
	offer.Tiers = nil
	if got, err := Admit(Spec{}, offer); err != nil || got.Tier != (TierOffer{}) || got.Tier.Tier != TierUnknown {
		t.Errorf("%+v, %v", got.Tier, err)
	}
	for _, tiers := range [][]TierOffer{nil, {{Tier: TierUnknown, Runtime: "x"}}} {
		offer.Tiers = tiers
		for _, tier := range IsolationTiers() {
			if _, err := Admit(Spec{RequireIsolation: Some(tier)}, offer); !Is(err, KindConfiguration) {
				t.Errorf("%v offered, %s required: %v, want ConfigurationError", tiers, tier, err)
			}
		}
	}
}

// A stronger tier is taken where a weaker one is required and not there.
func TestStrongerTierIsTaken(t *testing.T) {
	t.Parallel()
	offer := fullOffer()
	offer.Tiers = []TierOffer{{Tier: TierMicroVM, Runtime: "kata", Evidence: evidence}}
	for _, minimum := range []IsolationTier{TierContainer, TierGVisor, TierMicroVM} {
		if got, err := Admit(Spec{RequireIsolation: Some(minimum)}, offer); err != nil || got.Tier.Tier != TierMicroVM {
			t.Errorf("%s required: %+v, %v", minimum, got.Tier, err)
		}
	}
	offer.Tiers = []TierOffer{{Tier: TierContainer, Runtime: "runc"}}
	for _, minimum := range []IsolationTier{TierGVisor, TierMicroVM} {
		_, err := Admit(Spec{RequireIsolation: Some(minimum)}, offer)
		if !Is(err, KindConfiguration) || !strings.Contains(err.Error(), "container (runc)") {
			t.Errorf("%s required: %v, want a refusal that lists what there is", minimum, err)
		}
	}
}

func TestWeakestTierThatSatisfies(t *testing.T) {
	t.Parallel()
	for minimum, runtime := range map[IsolationTier]string{TierContainer: "runc", TierGVisor: "runsc", TierMicroVM: "kata"} {
		if got, err := Admit(Spec{RequireIsolation: Some(minimum)}, fullOffer()); err != nil || got.Tier.Runtime != runtime {
			t.Errorf("%s: %+v, %v", minimum, got.Tier, err)
		}
	}
}

// A tier above container without a document and a date is not claimed.
func TestTierNeedsEvidence(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Evidence{"none": {}, "no date": {Document: "x"}, "no document": {Date: "2026-12-01"}, "bad date": {"x", "yesterday"}} {
		offer := fullOffer()
		offer.Tiers = []TierOffer{{Tier: TierMicroVM, Runtime: "vm", Evidence: e}}
		if got, err := Admit(Spec{}, offer); err != nil || got.Tier.Tier != TierUnknown {
			t.Errorf("%s: %+v, %v", name, got.Tier, err)
		}
		if _, err := Admit(Spec{RequireIsolation: Some(TierContainer)}, offer); !Is(err, KindConfiguration) {
			t.Errorf("%s: required: %v", name, err)
		}
		if offer.Tiers[0].Tier != TierMicroVM {
			t.Errorf("%s: the backend's own offer was changed", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	template := fullOffer()
	template.CapsFromTemplate = true
	bare := Offer{Backend: "bare", EgressEnforcement: map[Egress]string{EgressAllow: "nothing"}, DiskRefusal: "no quota", AllowListRefusal: "no filter"}
	listless := fullOffer()
	listless.AllowListRefusal = "no filter"
	undeclared := fullOffer()
	undeclared.Capabilities &^= NetworkPolicies
	full := fullOffer()
	for name, test := range map[string]struct {
		offer Offer
		spec  Spec
		kind  ErrorKind
		field string
	}{
		"learn":                   {full, Spec{Network: NetworkPolicy{Egress: EgressLearn}}, KindCapabilityNotSupported, "network.egress"},
		"egress nonsense":         {full, Spec{Network: NetworkPolicy{Egress: "x"}}, KindConfiguration, "network.egress"},
		"deny not declared":       {undeclared, Spec{}, KindCapabilityNotSupported, "network.egress"},
		"allow not enforced":      {Offer{Backend: "x", EgressEnforcement: map[Egress]string{}}, Spec{Network: NetworkPolicy{Egress: EgressAllow}}, KindCapabilityNotSupported, "network.egress"},
		"any host":                {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("*")}}, KindConfiguration, "network.allow[0]"},
		"no host":                 {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("a.org", "")}}, KindConfiguration, "network.allow[1]"},
		"URL":                     {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("https://a.org")}}, KindConfiguration, "network.allow[0]"},
		"host with port":          {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("a.org:443")}}, KindConfiguration, "network.allow[0]"},
		"negative port":           {full, Spec{Network: NetworkPolicy{IngressPorts: TupleOf(80, -1)}}, KindConfiguration, "network.ingress_ports[1]"},
		"port above":              {full, Spec{Network: NetworkPolicy{IngressPorts: TupleOf(65536)}}, KindConfiguration, "network.ingress_ports[0]"},
		"memory of zero":          {full, Spec{Resources: Resources{MemoryMB: Some(int64(0))}}, KindConfiguration, "resources.memory_mb"},
		"disk of zero":            {full, Spec{Resources: Resources{DiskMB: Some(int64(0))}}, KindConfiguration, "resources.disk_mb"},
		"white space within":      {full, Spec{Name: "a b"}, KindConfiguration, "name"},
		"long name":               {full, Spec{Name: strings.Repeat("a", 64)}, KindConfiguration, "name"},
		"env with equals":         {full, Spec{Env: map[string]string{"A=B": "x"}}, KindConfiguration, "env"},
		"env with NUL":            {full, Spec{Env: map[string]string{"A\x00": "x"}}, KindConfiguration, "env"},
		"probe port of zero":      {full, Spec{Readiness: Readiness{TCPPort: Some(0)}}, KindConfiguration, "readiness.tcp_port"},
		"deny not enforced":       {bare, Spec{}, KindCapabilityNotSupported, "network.egress"},
		"allow list not enforced": {listless, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("a.org")}}, KindCapabilityNotSupported, "network.allow"},
		"allow list beside deny":  {full, Spec{Network: NetworkPolicy{Allow: TupleOf("a.org")}}, KindConfiguration, "network.allow"},
		"whole top-level domain":  {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("*.com")}}, KindConfiguration, "network.allow[0]"},
		"bare address":            {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("10.0.0.1")}}, KindConfiguration, "network.allow[0]"},
		"loose CIDR":              {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("10.0.0.0/8", "10.0.0.9/8")}}, KindConfiguration, "network.allow[1]"},
		"no CIDR":                 {full, Spec{Network: NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("10.0.0.0/64")}}, KindConfiguration, "network.allow[0]"},
		"port of zero":            {full, Spec{Network: NetworkPolicy{IngressPorts: TupleOf(0)}}, KindConfiguration, "network.ingress_ports[0]"},
		"port twice":              {full, Spec{Network: NetworkPolicy{IngressPorts: TupleOf(80, 80)}}, KindConfiguration, "network.ingress_ports[1]"},
		"gpu":                     {bare, Spec{Network: NetworkPolicy{Egress: EgressAllow}, Resources: Resources{GPU: Some("T4")}}, KindCapabilityNotSupported, "resources.gpu"},
		"empty gpu":               {full, Spec{Resources: Resources{GPU: Some(" ")}}, KindConfiguration, "resources.gpu"},
		"ingress":                 {bare, Spec{Network: NetworkPolicy{Egress: EgressAllow, IngressPorts: TupleOf(80)}}, KindCapabilityNotSupported, "network.ingress_ports"},
		"readiness":               {bare, Spec{Network: NetworkPolicy{Egress: EgressAllow}, Readiness: Readiness{TCPPort: Some(80)}}, KindCapabilityNotSupported, "readiness"},
		"unknown required":        {full, Spec{RequireIsolation: Some(TierUnknown)}, KindConfiguration, "require_isolation"},
		"required of nobody":      {bare, Spec{Network: NetworkPolicy{Egress: EgressAllow}, RequireIsolation: Some(TierContainer)}, KindConfiguration, "require_isolation"},
		"cpu above":               {full, Spec{Resources: Resources{CPU: Some(5.0)}}, KindConfiguration, "resources.cpu"},
		"cpu below":               {full, Spec{Resources: Resources{CPU: Some(0.001)}}, KindConfiguration, "resources.cpu"},
		"cpu of zero":             {full, Spec{Resources: Resources{CPU: Some(0.0)}}, KindConfiguration, "resources.cpu"},
		"cpu not a number":        {full, Spec{Resources: Resources{CPU: Some(math.NaN())}}, KindConfiguration, "resources.cpu"},
		"memory above":            {full, Spec{Resources: Resources{MemoryMB: Some(int64(9000))}}, KindConfiguration, "resources.memory_mb"},
		"memory below":            {full, Spec{Resources: Resources{MemoryMB: Some(int64(5))}}, KindConfiguration, "resources.memory_mb"},
		"negative memory":         {full, Spec{Resources: Resources{MemoryMB: Some(int64(-1))}}, KindConfiguration, "resources.memory_mb"},
		"disk":                    {bare, Spec{Network: NetworkPolicy{Egress: EgressAllow}, Resources: Resources{DiskMB: Some(int64(1))}}, KindConfiguration, "resources.disk_mb"},
		"cpu of a template":       {template, Spec{Resources: Resources{CPU: Some(1.0)}}, KindConfiguration, "resources.cpu"},
		"memory of a template":    {template, Spec{Resources: Resources{MemoryMB: Some(int64(1024))}}, KindConfiguration, "resources.memory_mb"},
		"disk of a template":      {template, Spec{Resources: Resources{DiskMB: Some(int64(10240))}}, KindConfiguration, "resources.disk_mb"},
		"image and id":            {full, Spec{Template: Template{Image: "a", ID: "b"}}, KindConfiguration, "template_id"},
		"white space":             {full, Spec{Template: Template{Image: "a "}}, KindConfiguration, "image"},
		"reserved label":          {full, Spec{Labels: map[string]string{"sandboxio.x": ""}}, KindConfiguration, `labels["sandboxio.x"]`},
		"reserved in capitals":    {full, Spec{Labels: map[string]string{"Sandboxio.x": ""}}, KindConfiguration, `labels["Sandboxio.x"]`},
		"empty label":             {full, Spec{Labels: map[string]string{"": ""}}, KindConfiguration, "labels"},
		"name":                    {full, Spec{Name: "-a"}, KindConfiguration, "name"},
		"no program":              {full, Spec{Command: []string{""}}, KindConfiguration, "command[0]"},
		"relative folder":         {full, Spec{WorkingDir: "a"}, KindConfiguration, "working_dir"},
		"env":                     {full, Spec{Env: map[string]string{"": "x"}}, KindConfiguration, "env"},
		"negative ttl":            {full, Spec{TTL: -1}, KindConfiguration, "ttl"},
		"two probes":              {full, Spec{Readiness: Readiness{TCPPort: Some(1), Exec: TupleOf("x")}}, KindConfiguration, "readiness"},
		"probe port":              {full, Spec{Readiness: Readiness{TCPPort: Some(70000)}}, KindConfiguration, "readiness.tcp_port"},
		"probe program":           {full, Spec{Readiness: Readiness{Exec: TupleOf("")}}, KindConfiguration, "readiness.exec[0]"},
		"probe interval":          {full, Spec{Readiness: Readiness{TCPPort: Some(1), Interval: -time.Second}}, KindConfiguration, "readiness.interval"},
		"probe timeout":           {full, Spec{Readiness: Readiness{TCPPort: Some(1), Timeout: -time.Second}}, KindConfiguration, "readiness.timeout"},
	} {
		_, err := Admit(test.spec, test.offer)
		if all := Errors(err); len(all) != 1 || all[0].Kind != test.kind || all[0].Field != test.field || all[0].Reason == "" || all[0].Remedy == "" {
			t.Errorf("%s: %v, want one %s at %s", name, err, test.kind, test.field)
		}
	}
}

func TestAllRefusalsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	invalid := Spec{
		Template: Template{Image: "a", ID: "b"}, Name: "-", WorkingDir: "x", TTL: -1, RequireIsolation: Some(TierUnknown),
		Resources: Resources{CPU: Some(0.0), MemoryMB: Some(int64(0)), DiskMB: Some(int64(0)), GPU: Some("")},
		Network:   NetworkPolicy{Egress: EgressLearn, Allow: TupleOf("!", "?"), IngressPorts: TupleOf(0)},
		Command:   []string{""}, Env: map[string]string{"": ""}, Labels: map[string]string{"sandboxio.a": "", "sandboxio.b": ""},
		Readiness: Readiness{Interval: -1, Timeout: -1},
	}
	var fields []string
	for _, e := range Errors(invalid.Validate()) {
		fields = append(fields, e.Field)
	}
	slices.Sort(fields)
	want := []string{
		"command[0]", "env", `labels["sandboxio.a"]`, `labels["sandboxio.b"]`, "name", "network.allow[0]", "network.allow[1]", "network.egress", "network.ingress_ports[0]",
		"readiness.interval", "readiness.timeout", "require_isolation", "resources.cpu", "resources.disk_mb", "resources.gpu", "resources.memory_mb", "template_id", "ttl", "working_dir",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("blamed %q, want %q", fields, want)
	}
	_, err := Admit(Spec{RequireIsolation: Some(TierMicroVM), Resources: Resources{CPU: Some(9.0), MemoryMB: Some(int64(1))}}, Offer{
		Backend: "x", Capabilities: NetworkPolicies, MaxCPU: 1, MinMemoryMB: 6, EgressEnforcement: map[Egress]string{EgressDeny: "x"},
	})
	if all := Errors(err); len(all) != 3 {
		t.Errorf("%v", err)
	}
}

func TestAllowListsAreTaken(t *testing.T) {
	t.Parallel()
	want := NetworkPolicy{Egress: EgressAllow, Allow: TupleOf("pypi.org", "*.pypi.org", "10.0.0.0/8", "fd00::/8", "localhost"), IngressPorts: TupleOf(80, 65535)}
	if got, err := Admit(Spec{Network: want}, fullOffer()); err != nil || got.Network != want || got.Enforcement.Egress != "bridge" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCapsOfTheTemplateAreInEffect(t *testing.T) {
	t.Parallel()
	offer := fullOffer()
	offer.CapsFromTemplate = true
	offer.Template.Resources = Resources{CPU: Some(2.0), MemoryMB: Some(int64(512))}
	if got, err := Admit(Spec{}, offer); err != nil || got.Resources != offer.Template.Resources {
		t.Errorf("%+v, %v", got, err)
	}
	want := offer.Template.Resources
	want.GPU = Some("T4")
	if got, err := Admit(Spec{Resources: Resources{GPU: want.GPU}}, offer); err != nil || got.Resources != want {
		t.Errorf("a gpu is the sandbox's own: %+v, %v", got, err)
	}
	// Neither the value that the template has nor the default is taken in silence.
	_, err := Admit(Spec{Resources: Resources{CPU: Some(2.0), MemoryMB: Some(int64(DefaultMemoryMB)), DiskMB: Some(int64(1))}}, offer)
	if all := Errors(err); len(all) != 3 {
		t.Errorf("%v, want three refusals", err)
	}
}

func TestCommandRules(t *testing.T) {
	t.Parallel()
	for field, cmd := range map[string]Command{
		"command": {}, "working_dir": {Argv: []string{"x"}, WorkingDir: "a"}, "timeout": {Argv: []string{"x"}, Timeout: -1},
		"max_output_bytes": {Argv: []string{"x"}, MaxOutputBytes: -1}, "env": {Argv: []string{"x"}, Env: map[string]string{"a=b": ""}},
	} {
		if all := Errors(cmd.Validate()); len(all) != 1 || all[0].Field != field {
			t.Errorf("%s: %v", field, all)
		}
	}
	if err := (Command{Argv: []string{"x"}, WorkingDir: "/", Env: map[string]string{"A": ""}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"a": "1", "b": ""}
	for name, test := range map[string]struct {
		filter Filter
		want   bool
	}{
		"all":         {Filter{}, true},
		"owner":       {Filter{Owner: "me"}, true},
		"other owner": {Filter{Owner: "you"}, false},
		"label":       {Filter{Labels: LabelsOf(map[string]string{"a": "1", "b": ""})}, true},
		"other value": {Filter{Labels: LabelsOf(map[string]string{"a": "2"})}, false},
		"no label":    {Filter{Labels: LabelsOf(map[string]string{"c": ""})}, false},
	} {
		if test.filter.Matches("me", labels) != test.want {
			t.Errorf("%s: %v", name, !test.want)
		}
	}
}

package web

import "muster/internal/metadata/config"

// BrokerList is the brokers of the cluster.
type BrokerList struct {
	Cluster string      `json:"cluster" doc:"the cluster id"`
	Brokers []BrokerRow `json:"brokers" csv:"rows" doc:"by node id"`
	// Incomplete is about what only a broker itself knows.
	Incomplete []Silent `json:"incomplete" doc:"brokers that did not say how they are"`
}

// BrokerRow is a broker.
type BrokerRow struct {
	ID         int32      `json:"id"`
	Rack       string     `json:"rack"`
	Here       bool       `json:"here" doc:"it is the one that answers"`
	Controller bool       `json:"controller" doc:"it is named to clients as the controller"`
	Partitions int        `json:"partitions" doc:"that it leads"`
	Listeners  []Endpoint `json:"listeners" doc:"where clients reach it"`
	HTTP       string     `json:"http" doc:"where other brokers reach its HTTP API; empty if they do not"`
	Groups     *int       `json:"groups" doc:"that it coordinates; null if it did not say"`
	Health     *Health    `json:"health" doc:"null if it did not say"`
}

// Endpoint is where a listener of a broker is reached.
type Endpoint struct {
	Name string `json:"name"`
	Host string `json:"host"`
	Port int32  `json:"port"`
}

// ownBrokers lists the brokers, and how this one is.
func (a *api) ownBrokers() *BrokerList {
	image := a.reads.Image()
	leads := map[int32]int{}
	for _, t := range image.Topics() {
		for _, p := range t.Partitions {
			leads[p.Leader]++
		}
	}
	out := &BrokerList{Cluster: image.ClusterID, Brokers: []BrokerRow{}, Incomplete: []Silent{}}
	for _, b := range image.Brokers {
		row := BrokerRow{ID: b.ID, Rack: b.Rack, Here: b.ID == a.reads.Node(), Controller: b.ID == image.Controller, Partitions: leads[b.ID], Listeners: []Endpoint{}, HTTP: b.HTTP}
		if row.Here {
			health, groups := a.health().judged(), a.reads.Snapshot().Groups.Len()
			row.Health, row.Groups = &health, &groups
		}
		for _, e := range b.Endpoints {
			row.Listeners = append(row.Listeners, Endpoint{e.Listener, e.Host, e.Port})
		}
		out.Brokers = append(out.Brokers, row)
	}
	return out
}

// SettingsQuery asks for settings.
type SettingsQuery struct {
	Set bool `query:"set" doc:"only those that were set"`
}

// SettingList is the settings of the broker.
type SettingList struct {
	Settings []Setting `json:"settings" csv:"rows" doc:"by name"`
}

// Setting is a setting of the broker.
type Setting struct {
	Name    string  `json:"name"`
	Value   *string `json:"value" doc:"null if it is a secret"`
	Source  string  `json:"source" doc:"default, start (a file, a flag or the environment) or altered (while the broker ran)"`
	Default string  `json:"default"`
	Static  bool    `json:"static" doc:"it can be changed only by a new start"`
	Doc     string  `json:"doc"`
}

// settings lists the settings. What is a secret, or may have one in it, is not shown.
func (a *api) settings(_ *call, q *SettingsQuery) (*SettingList, error) {
	image := a.reads.Image()
	out := &SettingList{Settings: []Setting{}}
	for _, d := range config.BrokerDefs() {
		if d.Inert {
			continue
		}
		s := Setting{Name: d.Name, Source: "default", Default: d.Default, Static: d.Static, Doc: d.Doc}
		switch _, altered := image.Set[d.Name]; {
		case altered:
			s.Source = "altered"
		case image.Defaults.IsSet(d.Name):
			s.Source = "start"
		case q.Set:
			continue
		}
		if !config.IsSecret(d.Name) {
			value := image.Config.Get(d.Name)
			s.Value = &value
		}
		out.Settings = append(out.Settings, s)
	}
	return out, nil
}

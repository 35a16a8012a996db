BEGIN TRANSACTION;
CREATE TABLE ledgerwood_entries (
	dataset TEXT NOT NULL, 
	position BIGINT NOT NULL, 
	line TEXT NOT NULL, 
	PRIMARY KEY (dataset, position), 
	FOREIGN KEY(dataset) REFERENCES ledgerwood_heads (dataset)
);
INSERT INTO "ledgerwood_entries" VALUES('golden',0,'{"budget":{"adjacency":"add-remove","delta":1e-05,"epsilon":6.0},"dataset":"golden","filter":"basic","hash":"2d1aac3fd6a17044fb94f77180fd8dada02cb9e166d384a0a845d60622a1e0a8","index":0,"kind":"open","previous":"0000000000000000000000000000000000000000000000000000000000000000","unit":"user","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',1,'{"charge":{"delta":0.0,"epsilon":0.125,"method":"pure"},"event":{"adjacency":"add-remove","epsilon":0.125,"type":"PureEvent"},"hash":"de3adbef374f3271c07c1076e8b5f5ca250ddf9999c451ed4e1b5fc3df74ea2a","index":1,"kind":"grant","previous":"2d1aac3fd6a17044fb94f77180fd8dada02cb9e166d384a0a845d60622a1e0a8","purpose":"quantiles","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',2,'{"event":{"adjacency":"add-remove","epsilon":0.125,"type":"PureEvent"},"grant":1,"hash":"ee7172b5c95b7afaf803eb14d81c60c8c2c905f42cfc6df8debb2e4786e6e330","index":2,"kind":"draw","previous":"de3adbef374f3271c07c1076e8b5f5ca250ddf9999c451ed4e1b5fc3df74ea2a","purpose":"median","randomness":"secure","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',3,'{"charge":{"delta":4e-06,"epsilon":0.7563261377465941,"method":"renyi","order":16.7879629336191},"event":{"events":[{"adjacency":"add-remove","noise_multiplier":10.0,"type":"LaplaceEvent"},{"count":50,"event":{"event":{"adjacency":"add-remove","noise_multiplier":1.5,"type":"GaussianEvent"},"sampling_rate":0.02,"type":"PoissonSampled"},"type":"Repeated"},{"event":{"adjacency":"add-remove","noise_multiplier":2.0,"type":"LaplaceEvent"},"sampling_rate":0.1,"type":"PoissonSampled"}],"type":"Composed"},"hash":"8a73da2172695f642811fef61fffd83bc0927600244850b82264335a5ccf47fa","index":3,"kind":"grant","previous":"ee7172b5c95b7afaf803eb14d81c60c8c2c905f42cfc6df8debb2e4786e6e330","purpose":"train","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',4,'{"event":{"adjacency":"add-remove","noise_multiplier":10.0,"type":"LaplaceEvent"},"grant":3,"hash":"30df4631392111d165c2abc567cf237582a5e854c83b588b7d38bca98ea6bf8f","index":4,"kind":"draw","previous":"8a73da2172695f642811fef61fffd83bc0927600244850b82264335a5ccf47fa","purpose":"initial score","randomness":"secure","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',5,'{"event":{"event":{"adjacency":"add-remove","noise_multiplier":1.5,"type":"GaussianEvent"},"sampling_rate":0.02,"type":"PoissonSampled"},"grant":3,"hash":"09fbc1b2d999c58f517c387f03c09bb878fb879bd476615940204ac49e4eca27","index":5,"kind":"draw","previous":"30df4631392111d165c2abc567cf237582a5e854c83b588b7d38bca98ea6bf8f","purpose":"step 1","randomness":"secure","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',6,'{"event":{"event":{"adjacency":"add-remove","noise_multiplier":1.5,"type":"GaussianEvent"},"sampling_rate":0.02,"type":"PoissonSampled"},"grant":3,"hash":"8fe27cc49627d7705c6d4261ec65b83a872fb6ff35948ae3941246bc856c05f1","index":6,"kind":"draw","previous":"09fbc1b2d999c58f517c387f03c09bb878fb879bd476615940204ac49e4eca27","purpose":"step 2","randomness":"secure","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',7,'{"event":{"event":{"adjacency":"add-remove","noise_multiplier":1.5,"type":"GaussianEvent"},"sampling_rate":0.02,"type":"PoissonSampled"},"grant":3,"hash":"2a29b5a52241bad41694045d24ad1b44df4f1861942307a891ec2081bdd1ea80","index":7,"kind":"draw","previous":"8fe27cc49627d7705c6d4261ec65b83a872fb6ff35948ae3941246bc856c05f1","purpose":"step 3","randomness":"secure","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',8,'{"charge":{"delta":1e-06,"epsilon":0.24953203064884516,"method":"profile"},"event":{"event":{"events":[{"adjacency":"add-remove","noise_multiplier":4.0,"type":"GaussianEvent"},{"adjacency":"add-remove","noise_multiplier":3.0,"type":"LaplaceEvent"}],"probabilities":[0.25,0.5],"type":"Parallel"},"sampling_rate":0.2,"type":"PoissonSampled"},"hash":"e38ab1d5bb95b67540dfcc773f57bc8c11b53ca943ab0423dce4a479da7193e6","index":8,"kind":"grant","previous":"2a29b5a52241bad41694045d24ad1b44df4f1861942307a891ec2081bdd1ea80","purpose":"groups","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',9,'{"charge":{"delta":0.0,"epsilon":0.25000000000000006,"method":"pure"},"event":{"events":[{"adjacency":"add-remove","noise_multiplier":4.0,"type":"LaplaceEvent"},{"adjacency":"add-remove","noise_multiplier":5.0,"type":"LaplaceEvent"}],"probabilities":null,"type":"Parallel"},"hash":"855b1ecd304018fbdc82c36493430f22bff86822e1d9342021f5588427a22e3f","index":9,"kind":"grant","previous":"e38ab1d5bb95b67540dfcc773f57bc8c11b53ca943ab0423dce4a479da7193e6","purpose":"worst group","version":1}');
INSERT INTO "ledgerwood_entries" VALUES('golden',10,'{"charge":{"delta":1e-06,"epsilon":0.09999600000800053,"method":"renyi","order":250001.90347880544},"event":{"count":2,"event":{"adjacency":"add-remove","noise_multiplier":20.0,"type":"LaplaceEvent"},"type":"Repeated"},"hash":"33c447cd7b7eff447d945fd8fb956b43fce02ac3b5040ccc8916a9078c7d0cdf","index":10,"kind":"grant","previous":"855b1ecd304018fbdc82c36493430f22bff86822e1d9342021f5588427a22e3f","purpose":"two means","version":1}');
CREATE TABLE ledgerwood_heads (
	dataset TEXT NOT NULL, 
	entries BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (dataset)
);
INSERT INTO "ledgerwood_heads" VALUES('golden',11,'33c447cd7b7eff447d945fd8fb956b43fce02ac3b5040ccc8916a9078c7d0cdf');
CREATE TABLE ledgerwood_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "ledgerwood_schema" VALUES(1);
COMMIT;

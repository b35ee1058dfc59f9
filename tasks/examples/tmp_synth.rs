fn main() {
    let mut robot = manege_tasks::motion::Kinematics::g1().unwrap();
    let a: Vec<String> = std::env::args().collect();
    if a.len() > 2 {
        for p in &a[2..] {
            match manege_tasks::motion::Motion::read(p, &robot) {
                Ok(m) => println!("{:?} {:?}", manege_tasks::motion::measure(&m, &mut robot, None), manege_tasks::motion::verify(&m, &mut robot).map(|_| ()).map_err(|e| e.to_string())),
                Err(e) => println!("{e}"),
            }
        }
        return;
    }
    let t = std::time::Instant::now();
    let m = manege_tasks::motion::synthesize_g1(&mut robot).unwrap();
    println!("{:?}", t.elapsed());
    m.write(std::fs::File::create(&a[1]).unwrap()).unwrap();
}
